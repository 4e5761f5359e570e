"""The order of many trials at their epochs, kept up to date: right after any change, and with little work."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from automl.pruners.base import Pruner
from automl.registry import available, pruner_class
from automl.standings import Standings
from studies.trial import Trial, TrialState
from tests.automl.pruners.test_all_pruners import OPTIONS
from tests.helpers.trials import make_trial
from trainers.reporting import Decision

MANY = 5000


def reports(trial: Trial) -> Mapping[int, float] | None:
    return None if trial.state is TrialState.FAILED else trial.reports


def expected(trials: Sequence[Trial], epoch: int) -> list[tuple[float, int, int]]:
    return sorted(
        (trial.reports[epoch], trial.number, trial.id)
        for trial in trials
        if epoch in trial.reports and trial.state is not TrialState.FAILED
    )


def drawn(number: int, rng: np.random.Generator) -> Trial:
    state = TrialState.FAILED if rng.random() < 0.1 else TrialState.RUNNING
    return make_trial(number, state=state, reports=list(np.round(rng.random(int(rng.integers(5))), 1)))


def check(standings: Standings, trials: Sequence[Trial]) -> None:
    standings.look(tuple(trials))
    for epoch in range(1, 6):
        assert list(standings.at(epoch)) == expected(trials, epoch)
    assert standings.count == sum(trial.state is not TrialState.FAILED for trial in trials)


def test_order_is_right_after_every_change() -> None:
    rng = np.random.default_rng(0)
    standings, trials = Standings(reports), [drawn(number, rng) for number in range(600)]
    for _ in range(60):
        for at in rng.integers(len(trials), size=5):
            trials[at] = drawn(int(at), rng)
        trials += [drawn(len(trials) + more, rng) for more in range(int(rng.integers(3)))]
        check(standings, trials)


def test_other_studies_other_orders_and_shorter_ones_are_read_anew() -> None:
    rng = np.random.default_rng(1)
    standings, trials = Standings(reports), [drawn(number, rng) for number in range(40)]
    check(standings, trials)
    check(standings, trials[::-1])
    check(standings, trials[:7])
    check(standings, [replace(drawn(number, rng), id=5000 + number) for number in range(40)])
    check(standings, [])


def test_others_are_counted_without_the_trial_itself() -> None:
    trials = [make_trial(number, state=TrialState.RUNNING, reports=[0.1 * number]) for number in range(4)]
    standings = Standings(reports)
    standings.look(trials)
    assert standings.others_at(1, trials[2], trials[2].reports[1]) == (3, 2)
    assert standings.others_at(1, make_trial(9, reports=[0.15]), 0.15) == (4, 2)
    twin = make_trial(9, reports=[trials[2].reports[1]])
    assert standings.others_at(1, twin, trials[2].reports[1]) == (4, 2)
    assert standings.others_at(1, twin, trials[2].reports[1], by_age=True) == (4, 3)


def test_only_what_has_changed_is_read() -> None:
    read: list[int] = []

    def counted(trial: Trial) -> Mapping[int, float]:
        read.append(trial.number)
        return trial.reports

    trials = [make_trial(number, reports=[0.5]) for number in range(MANY)]
    standings = Standings(counted)
    standings.look(tuple(trials))
    read.clear()
    trials[77] = make_trial(77, reports=[0.4, 0.3])
    trials.append(make_trial(MANY, reports=[0.1]))
    standings.look(tuple(trials))
    assert read == [77, MANY]


@pytest.mark.parametrize("name", available("pruner"))
def test_pruner_that_has_seen_the_whole_search_decides_as_a_fresh_one(name: str) -> None:
    def made() -> Pruner:
        return pruner_class(name)("minimize", 9, **OPTIONS.get(name, {}))

    rng, old = np.random.default_rng(3), made()
    trials: list[Trial] = []
    for number in range(60):
        curve: list[float] = []
        for _ in range(8):
            curve.append(float(np.round(rng.random(), 1)))
            trial = make_trial(number, state=TrialState.RUNNING, reports=curve)
            decision = old.decide(trial, (*trials, trial))
            assert made().decide(trial, (*trials, trial)) is decision
            if decision is not Decision.CONTINUE:
                break
        state = TrialState.PAUSED if decision is Decision.PAUSE else TrialState.PRUNED
        trials.append(replace(trial, state=state))
