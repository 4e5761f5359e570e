"""The log of the command line: one line per event, on standard error."""

import logging
import warnings

__all__ = ["configure"]

_PACKAGES = ("automl", "search_spaces", "studies", "trainers")


def configure(*, debug: bool) -> None:
    """Send our packages' messages to standard error, and keep the libraries' chatter out.

    Called by the command line only: a program that uses the Python API keeps its own logging.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("[%(levelname).1s %(asctime)s] %(message)s", datefmt="%H:%M:%S"))
    for name in _PACKAGES:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.DEBUG if debug else logging.INFO)
        logger.propagate = False
    logging.getLogger("optuna").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    if not debug:
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
