"""What `automl show` says of a trial's inside."""

from automl.cli.facts import fact_lines
from studies.storage import Storage
from studies.trial import TrialState
from tests.automl.cli.conftest import Shell
from tests.helpers.toy import SPACE
from tests.trainers.tiny_space import SPACE as TINY
from tests.trainers.training import PLAIN


def test_show_has_expected_numbers_beside_real_ones_and_a_line_for_each_warning(shell: Shell) -> None:
    facts = {
        "device_memory_mib": 612.5,
        "estimated_memory_mib": 580.0,
        "epoch_s": 2.5,
        "estimated_epoch_s": 3.0,
        "warnings": ["memory is nearly full", "the loss does not fall"],
    }
    with Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db") as storage:
        study = storage.create_study("seen", direction="minimize")
        lease = study.create_trial(0, SPACE.validate({"x": 0.5}), SPACE.distributions(), owner="somebody")
        study.report(lease, epoch=1, value=0.5)
        study.tell(lease, TrialState.COMPLETE, value=0.5, attributes=facts)
    out = shell("show", "seen", 0).out
    assert "  device_memory_mib  612.5 (expected 580)\n" in out
    assert "  epoch_s  2.5 (expected 3)\n" in out
    assert "estimated_" not in out
    assert "  warnings\n    memory is nearly full\n    the loss does not fall\n" in out


def test_places_are_found_on_this_machine_and_lists_are_for_people() -> None:
    facts = {
        "class_names": ["cat", "dog"],
        "confusion": [[5, 0], [2, 3]],
        "f1_per_class": [0.8333333, 0.75],
        "profile": "seen/trial-00000/attempt-1/profile-operators.txt",
        "tensorboard": "seen/tensorboard/trial-00000",
        "shape": [],
    }
    assert list(fact_lines(facts, "s3://bucket/runs")) == [
        "class_names  cat, dog",
        "confusion (a row for each true class, a column for each answer)",
        "       cat  dog",
        "  cat  5    .",
        "  dog  2    3",
        "f1_per_class  cat 0.8333, dog 0.75",
        "profile  s3://bucket/runs/seen/trial-00000/attempt-1/profile-operators.txt",
        "tensorboard  s3://bucket/runs/seen/tensorboard/trial-00000",
        "shape  []",
    ]


def test_of_many_classes_the_worst_pairs_are_named() -> None:
    confusion = [[9 if true == answer else 0 for answer in range(13)] for true in range(13)]
    confusion[3][7], confusion[12][0] = 2, 4
    assert list(fact_lines({"confusion": confusion}, "/runs")) == [
        "confusion (the most frequent of 2 pairs)",
        "  4 of 13 items of 12 taken for 0",
        "  2 of 11 items of 3 taken for 7",
    ]


def test_epochs_of_trainings_in_this_process_are_logged_unless_it_is_quiet(shell: Shell) -> None:
    with Storage(f"sqlite:///{shell.folder}/automl-runs/studies.db") as storage:
        study = storage.create_study("seen", direction="maximize")
        study.enqueue([TINY.validate(PLAIN)] * 2, TINY.distributions())
    arguments = ("search", "--space", "tests.trainers.tiny_space", "--study", "seen", "--executor", "inline")
    loud = shell(*arguments, "--epochs", 1, "--trials", 1)
    quiet = shell(*arguments, "--trials", 2, "--quiet")
    assert (loud.code, quiet.code) == (0, 0), (loud, quiet)
    assert "epoch 1/1 loss " in loud.err
    assert "epoch 1/1" not in quiet.err
