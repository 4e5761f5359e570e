"""Runs `automl` many times without importing its libraries each time: a process that forks one child per command.

Reads a JSON object per line from standard input and answers with the exit code on a line. Each child is a process of
its own with its own folder, environment and outputs, which runs the program's entry point as the installed script does.
Only the taking apart of all modules at the end of a child is left out, which takes longer than most commands.
"""

import atexit
import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NoReturn

IMPORTED = (
    "automl.cli.export", "automl.cli.outcome", "automl.cli.queue", "automl.cli.report", "automl.cli.search",
    "automl.cli.spaces", "automl.cli.stop", "automl.cli.studies",
    "automl.pruners.asha", "automl.samplers.tpe", "optuna.storages", "optuna.visualization", "plotly.io",
    "plotly.subplots", "studies.figures.gallery", "studies.figures.sections", "tests.helpers.moody_toy", "torch",
    "torch._dynamo", "trainers.tasks.image_classification",
)  # fmt: skip


def serve() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
            _run()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run() -> NoReturn:
    from automl.cli import main

    try:
        main()
    except SystemExit as end:
        code = end.code
    assert isinstance(code, int)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _become(request: Mapping[str, Any]) -> None:
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv = ["automl", *request["arguments"]]
    for number, path in enumerate((os.devnull, request["out"], request["err"])):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)


if __name__ == "__main__":
    for name in IMPORTED:
        import_module(name)
    serve()
