"""Brackets: who is in which, and that the first trials are judged, too."""

from collections import Counter

from automl.executors.simulated import Measured, simulate
from automl.pruners.hyperband import HyperbandPruner
from automl.samplers.random import RandomSampler
from automl.scheduler import Scheduler
from search_spaces.configuration import Configuration
from studies.trial import TrialState
from tests.helpers.toy import SPACE


def test_brackets_begin_to_judge_later_and_later() -> None:
    rule = HyperbandPruner("minimize", 27)
    assert [bracket.rungs for bracket in rule.brackets] == [(1, 3, 9), (3, 9), (9,)]


def test_share_of_a_bracket_is_that_of_the_paper_from_the_first_trials_on() -> None:
    rule = HyperbandPruner("minimize", 27)
    for count in (20, 200):
        found = Counter(rule.bracket(number) for number in range(count))
        assert [abs(found[at] / count - share / 5.5) < 0.06 for at, share in enumerate((3.0, 1.5, 1.0))] == [True] * 3


def test_bracket_is_a_fact_of_the_number() -> None:
    assert [HyperbandPruner("minimize", 27).bracket(number) for number in range(50)] == [
        HyperbandPruner("maximize", 27).bracket(number) for number in range(50)
    ]


def test_first_wave_is_judged_and_its_best_goes_on() -> None:
    def losses(configuration: Configuration, number: int, epoch: int) -> Measured:
        return Measured(float(number))

    pruner = HyperbandPruner("minimize", 8)
    scheduler = Scheduler(space=SPACE, sampler=RandomSampler("minimize"), pruner=pruner, seed=0)
    found = simulate(scheduler, losses, workers=4, trials=4)
    assert found.trials[0].state is TrialState.COMPLETE
    assert any(trial.state is TrialState.PRUNED for trial in found.trials)


def test_training_of_one_epoch_has_nobody_to_stop() -> None:
    assert [bracket.rungs for bracket in HyperbandPruner("minimize", 1).brackets] == [()]
