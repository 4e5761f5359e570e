"""The command line: parse, call the library, print. One file per group of verbs."""

import sys

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
    sys.exit(code)
