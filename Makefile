# `make search` and `make test` need Python 3.11 or later and nothing else; `make check` is what every change passes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two files of tests at once: most wait for processes more than they compute. A file is never cut, as its tests share
# servers and clusters; those that kill and stop processes for a long time have the machine to themselves.
AT_ONCE := --numprocesses 2 --dist loadfile
export OMP_NUM_THREADS ?= 1

.PHONY: search test test-slow test-all check format install install-dev clean

search: install
	$(BIN)/automl search --space nas_small

test: install-dev
	$(BIN)/python -m pytest -m "not slow" $(AT_ONCE)

test-slow: install-dev
	$(BIN)/python -m pytest -m "slow and not chaos" $(AT_ONCE)
	$(BIN)/python -m pytest -m "slow and chaos"

test-all: test test-slow

check: install-dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_imports.py

format: install-dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

install: $(VENV)/installed

install-dev: $(VENV)/installed-dev

# The marks are newer than the files that say what is installed, or the installation runs again.
$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
