"""The command line: parse, call the library, print. One file per group of verbs."""

import os
import sys
import threading
from typing import NoReturn

__all__ = ["main"]


def main() -> None:
    """Run the command that the arguments name and exit with its code."""
    try:
        from automl.env import make_working_folder_importable, put_own_packages_first

        put_own_packages_first()
        make_working_folder_importable()
        from automl.cli.application import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while the libraries are imported; later ones are handled where they matter
        code = 130
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End the process; at once where a training of this process is still inside torch, which would abort otherwise."""
    if any(thread.daemon and thread.name.startswith("inline-job") for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
