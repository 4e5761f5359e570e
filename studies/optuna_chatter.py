"""Keeps Optuna from announcing every copy of a study in memory as a new study."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["without_chatter"]


@contextmanager
def without_chatter() -> Iterator[None]:
    """Let Optuna's storages say warnings only; nothing else is logged while a copy is made."""
    logger = logging.getLogger("optuna.storages")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
