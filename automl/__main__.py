"""`python -m automl`."""

from automl.cli import main

if __name__ == "__main__":
    main()
