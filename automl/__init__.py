"""Searches hyperparameters and neural architectures: Optuna proposes, Ray trains, one database remembers.

Importing the package is cheap: torch, Ray and Optuna are loaded when a search needs them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from automl.api import load_study as load_study
    from automl.api import resume as resume
    from automl.api import search as search
    from automl.session import SearchOutcome as SearchOutcome
    from automl.spec import SearchSpec as SearchSpec

__all__ = ["SearchOutcome", "SearchSpec", "__version__", "load_study", "resume", "search"]

__version__ = "0.1.0"

_HOME = {
    "SearchOutcome": "automl.session",
    "SearchSpec": "automl.spec",
    "load_study": "automl.api",
    "resume": "automl.api",
    "search": "automl.api",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module 'automl' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOME[name]), name)
