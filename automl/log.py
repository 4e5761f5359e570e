"""The log of the command line: one line per event, on standard error."""

import logging
import sys
import warnings

__all__ = ["configure", "leave_out_epochs"]

_PACKAGES = ("automl", "search_spaces", "studies", "trainers")


def configure(*, debug: bool) -> None:
    """Send our packages' messages to standard error, and keep the libraries' chatter out.

    Called by the command line only: a program that uses the Python API keeps its own logging.
    """
    handler = _StandardError()
    handler.setFormatter(logging.Formatter("[%(levelname).1s %(asctime)s] %(message)s", datefmt="%H:%M:%S"))
    for name in _PACKAGES:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(logging.DEBUG if debug else logging.INFO)
        logger.propagate = False
    logging.getLogger("optuna").setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # a broken connection reaches us as an exception
    if not debug:
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)


def leave_out_epochs() -> None:
    """Keep what trainings in this process say of each epoch out of the log, unless everything is wanted."""
    logger = logging.getLogger("trainers")
    if logger.level == logging.INFO:
        logger.setLevel(logging.WARNING)


class _StandardError(logging.Handler):
    """Writes to what standard error is at that moment: the live view takes its place while it draws."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)
