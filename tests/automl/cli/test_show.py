"""What `automl show` says of a trial's inside."""

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
