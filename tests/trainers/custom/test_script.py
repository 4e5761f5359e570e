import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.helpers.commands import REPOSITORY, until
from tests.trainers.custom.own import Reports, own_task, train, write
from trainers.custom.process import ScriptKilledError
from trainers.errors import BadDataError, DamagedCheckpointError, NonFiniteLossError, TrialError, UserCodeError
from trainers.reporting import Decision, Report, TrialResult
from trainers.tasks import load_trainer

PRINTS = """
    import json, os, sys
    print("a line of the log")
    print(json.dumps({"train_loss": 3}))
    for epoch in range(1, 4):
        print(json.dumps({"epoch": epoch, "accuracy": epoch / 10, "ok": True, "note": "x"}))
    print(json.dumps({"epoch": 4, "accuracy": 1}))
    """
RESUMES = """
    import json, os, pathlib
    start = os.environ["AUTOML_RESUME_FROM"]
    weight = float(pathlib.Path(start).read_text()) if start else 0.0
    for epoch in range(int(os.environ["AUTOML_START_EPOCH"]) + 1, int(os.environ["AUTOML_EPOCHS"]) + 1):
        weight += json.loads(os.environ["AUTOML_CONFIGURATION"])["x"]
        name = f"epoch{epoch}.txt"
        pathlib.Path(os.environ["AUTOML_CHECKPOINT_DIR"], name).write_text(str(weight))
        print(json.dumps({"epoch": epoch, "accuracy": weight, "checkpoint": name}), flush=True)
    """
SLEEPS = """
    import json, os, pathlib, subprocess, sys, time
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    print(json.dumps({"epoch": 1, "accuracy": 0.5, "pid": os.getpid(), "child": child.pid}), flush=True)
    time.sleep(600)
    """


def script(tmp_path: Path, text: str, words: str = "") -> str:
    write(tmp_path, "train.py", text)
    return f"$ cd {tmp_path} && {sys.executable} train.py {words}"


def is_gone(pid: float) -> bool:
    return not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE


def test_json_lines_with_the_objective_are_reports(tmp_path: Path) -> None:
    result, reports = train(script(tmp_path, PRINTS), own_task(tmp_path))
    assert (result.outcome, result.epoch, result.facts["best_epoch"]) == ("completed", 3, 3)
    assert [(report.epoch, report.metrics["accuracy"]) for report in reports] == [(1, 0.1), (2, 0.2), (3, 0.3)]
    assert set(reports[0].metrics) == {"accuracy", "epoch_s"}


def test_arguments_and_environment_tell_the_configuration(tmp_path: Path) -> None:
    text = """
        import json, os, sys
        print(json.dumps({"accuracy": 1, "argument": float(sys.argv[sys.argv.index("--x") + 1]), "n": int(sys.argv[1]),
            "seed": int(os.environ["AUTOML_SEED"]), "x": json.loads(os.environ["AUTOML_CONFIGURATION"])["x"]}))
        """
    _, reports = train(script(tmp_path, text, "{epochs}"), own_task(tmp_path, configuration={"x": 0.25}))
    assert {name: reports[0].metrics[name] for name in ("argument", "n", "seed", "x")} == {
        "argument": 0.25, "n": 3, "seed": 5, "x": 0.25
    }  # fmt: skip


def test_resumed_script_goes_on_from_its_own_file(tmp_path: Path) -> None:
    reference = script(tmp_path, RESUMES)
    _, whole = train(reference, own_task(tmp_path / "whole"))
    result, first = train(reference, own_task(tmp_path), Reports({1: Decision.PAUSE}))
    assert (result.outcome, result.epoch) == ("paused", 1)
    assert first[0].checkpoint is not None
    result, second = train(reference, own_task(tmp_path, resume_from=first[0].checkpoint.path))
    values = [(report.epoch, report.metrics["accuracy"]) for report in [*first, *second]]
    assert values == [(report.epoch, report.metrics["accuracy"]) for report in whole]
    assert result.facts["best_epoch"] == 3


def test_script_goes_on_from_nothing_of_another_trial(tmp_path: Path) -> None:
    reference = script(tmp_path, RESUMES)
    _, first = train(reference, own_task(tmp_path), Reports({1: Decision.PAUSE}))
    assert first[0].checkpoint is not None
    resume: dict[str, Any] = {"resume_from": first[0].checkpoint.path}
    other = own_task(tmp_path, configuration={"x": 0.75}, **resume)
    with pytest.raises(DamagedCheckpointError, match=r"another trial; x: checkpoint 0\.5, task 0\.75$"):
        train(reference, other)
    with pytest.raises(BadDataError, match="data or their splits have changed"):
        train(reference, own_task(tmp_path, **resume), source="other")


def test_checkpoint_that_does_not_say_whose_it_is_is_gone_on_with(tmp_path: Path) -> None:
    reference = script(tmp_path, RESUMES)
    _, first = train(reference, own_task(tmp_path), Reports({1: Decision.PAUSE}))
    assert first[0].checkpoint is not None
    file = tmp_path / "artifacts" / first[0].checkpoint.path
    line, own = file.read_bytes().split(b"\n", 1)
    head = {name: value for name, value in json.loads(line).items() if name in ("epoch", "name", "best")}
    file.write_bytes(json.dumps(head).encode() + b"\n" + own)
    _, second = train(reference, own_task(tmp_path, resume_from=first[0].checkpoint.path))
    assert [(report.epoch, report.metrics["accuracy"]) for report in second] == [(2, 1.0), (3, 1.5)]


@pytest.mark.parametrize("patience, warns", [(0, True), (1, False)], ids=["by itself", "without hope"])
def test_script_that_ends_before_its_last_epoch_is_complete_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, patience: int, warns: bool
) -> None:
    text = 'print(\'{"accuracy": 0.5}\\n{"accuracy": 0.4}\')'
    result, reports = train(script(tmp_path, text), own_task(tmp_path, epochs=4, patience=patience))
    assert (result.outcome, result.epoch, len(reports), result.facts["best_epoch"]) == ("completed", 2, 2, 1)
    told = [record.message for record in caplog.records if "ended after epoch 2 of 4" in record.message]
    assert (result.facts.get("warnings"), len(told)) == ((told, 1) if warns else (None, 0))


def test_pruned_script_ends_with_all_its_processes(tmp_path: Path) -> None:
    result, reports = train(script(tmp_path, SLEEPS), own_task(tmp_path), Reports({1: Decision.STOP}))
    assert result.outcome == "stopped"
    assert is_gone(reports[0].metrics["pid"]) and is_gone(reports[0].metrics["child"])


@pytest.mark.slow
def test_script_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    text = SLEEPS.replace(
        "import json", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    import json"
    )
    began = time.monotonic()
    _, reports = train(script(tmp_path, text), own_task(tmp_path), Reports({1: Decision.STOP}))
    assert 5.0 <= time.monotonic() - began < 9.0
    assert is_gone(reports[0].metrics["pid"]) and is_gone(reports[0].metrics["child"])


@pytest.mark.slow
@pytest.mark.chaos
def test_killed_training_takes_its_script_along(tmp_path: Path) -> None:
    reference = script(tmp_path, SLEEPS)
    code = (
        "import sys, pathlib\nfrom tests.trainers.custom.own import own_task, train\n"
        "def tell(report):\n"
        "    print(int(report.metrics['pid']), int(report.metrics['child']), flush=True)\n"
        "    while True: input()\n"
        f"train({reference!r}, own_task(pathlib.Path({str(tmp_path)!r})), tell)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as training:
        assert training.stdout is not None
        pids = [int(word) for word in training.stdout.readline().split()]
        assert len(pids) == 2 and not any(map(is_gone, pids))
        training.kill()
    until(lambda: all(map(is_gone, pids)), 10.0, "the end of the script and its child")


@pytest.mark.parametrize(
    "text, words",
    [
        ("print('hello')", "ended without a metric; let it print a JSON object"),
        ("print('{\"acuracy\": 1, \"loss\": 2}')", "did you mean 'acuracy'? its JSON objects have: acuracy, loss"),
        ("print('{\"accuracy\": true}')", "accuracy=True, which is no number"),
        ("print('{\"accuracy\": null}')", "accuracy=None, which is no number"),
        ("print('{\"accuracy\": 1, \"epoch\": 0}')", "reports epoch 0 after epoch 0"),
        ("print('{\"accuracy\": 1, \"epoch\": 2}\\n{\"accuracy\": 1, \"epoch\": 2}')", "reports epoch 2 after epoch 2"),
        ("print('{\"accuracy\": 1, \"checkpoint\": \"../x\"}')", "no file in the folder AUTOML_CHECKPOINT_DIR"),
        ("import sys\nprint('{\"accuracy\": 1}')\nsys.exit(3)", "exit code 3; it said nothing"),
        ("\n1 / 0", "exit code 1: ZeroDivisionError: division by zero\nits standard error ended:"),
        ("import os\nos.kill(os.getpid(), 15)", "ended by signal 15"),
    ],
    ids=["log only", "other names", "truth", "null", "zero", "twice", "outside", "exit", "raises", "signal"],
)  # fmt: skip
def test_mistake_of_a_script_is_told_with_advice(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UserCodeError) as caught:
        train(script(tmp_path, text), own_task(tmp_path))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "text, kind",
    [("print('{\"accuracy\": NaN}')", NonFiniteLossError), ("import os\nos.kill(os.getpid(), 9)", ScriptKilledError)],
)
def test_end_that_is_no_mistake_has_its_own_cause(tmp_path: Path, text: str, kind: type[TrialError]) -> None:
    with pytest.raises(kind):
        train(script(tmp_path, text), own_task(tmp_path))


def test_last_line_needs_no_end_and_an_error_of_the_reporter_ends_the_script(tmp_path: Path) -> None:
    result, _ = train(script(tmp_path, "print('{\"accuracy\": 1}', end='')"), own_task(tmp_path))
    assert result == TrialResult(outcome="completed", epoch=1, facts=result.facts)
    pids: list[float] = []

    def refuse(report: Report) -> Decision:
        pids.append(report.metrics["pid"])
        raise KeyboardInterrupt

    trainer = load_trainer(script(tmp_path, SLEEPS))
    from trainers.distributed import Ranks

    with pytest.raises(KeyboardInterrupt):
        trainer.fit(own_task(tmp_path), "digest", Ranks.alone("cpu"), refuse)
    assert is_gone(pids[0])


def test_nothing_of_a_script_is_left_open(tmp_path: Path) -> None:
    reference = script(tmp_path, PRINTS)
    train(reference, own_task(tmp_path))
    before = set(os.listdir("/proc/self/fd"))
    train(reference, own_task(tmp_path))
    assert set(os.listdir("/proc/self/fd")) == before
