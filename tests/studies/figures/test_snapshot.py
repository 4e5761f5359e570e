import math
from datetime import UTC, timedelta

import optuna
import pytest

from studies.figures.frozen import optuna_study
from studies.figures.gallery import FIGURES
from studies.figures.snapshot import snapshot_of
from studies.trial import TrialState
from tests.studies.figures.examples import START, ordinary_study, snapshot, trial
from tests.studies.figures.odd_studies import ODD_STUDIES


def plain_study() -> optuna.Study:
    study = optuna.create_study(study_name="plain", direction="minimize")
    study.enqueue_trial({"x": 7.0})
    for value in (0.3, math.inf, 0.1, 0.2):
        running = study.ask()
        running.suggest_float("x", 0.0, 8.0)
        running.report(value, 1)
        if value == 0.1:
            running.set_constraint("memory", 1.0)
        study.tell(running, value)
    pruned = study.ask()
    pruned.suggest_float("x", 0.0, 8.0)
    pruned.report(0.05, 1)
    study.tell(pruned, state=optuna.trial.TrialState.PRUNED)
    study.tell(study.ask(), state=optuna.trial.TrialState.FAIL)
    study.ask()
    return study


def test_best_is_the_best_complete_trial_never_a_pruned_one() -> None:
    pruned = [trial(i, TrialState.PRUNED, reports={1: 0.3}) for i in range(1, 5)]
    study = snapshot(trial(0, value=0.5), *pruned)
    assert study.best is not None
    assert study.best.number == 0


def test_best_of_equal_trials_is_the_earlier() -> None:
    pair = trial(0, value=0.5), trial(1, value=0.5)
    for study in (snapshot(*pair, direction="minimize"), snapshot(*pair, direction="maximize")):
        assert study.best is not None
        assert study.best.number == 0


def test_metric_is_named_by_the_specification() -> None:
    assert snapshot_of(ordinary_study(3)).metric == "accuracy"
    assert snapshot_of(ordinary_study(3), metric="loss").metric == "loss"


def test_plain_optuna_study_becomes_a_snapshot_with_our_states() -> None:
    taken = snapshot_of(plain_study())
    states = [trial.state for trial in taken.trials]
    assert states == [
        TrialState.COMPLETE,
        TrialState.FAILED,  # infinite
        TrialState.INFEASIBLE,  # violates a constraint
        TrialState.COMPLETE,
        TrialState.PRUNED,
        TrialState.FAILED,
        TrialState.RUNNING,
    ]
    assert taken.trials[1].cause == "non_finite"
    assert taken.best is not None
    assert taken.best.number == 3
    assert taken.trials[0].configuration == {"x": 7.0}
    assert taken.trials[0].started_at is not None
    assert taken.trials[0].started_at.tzinfo is UTC
    assert FIGURES["history"].draw(taken).data


def test_plain_optuna_study_with_two_objectives_is_refused() -> None:
    study = optuna.create_study(study_name="two", directions=["minimize", "maximize"])
    with pytest.raises(ValueError, match="study 'two' has 2 objectives"):
        snapshot_of(study)


def test_copy_for_optuna_holds_the_same_trials() -> None:
    taken = snapshot_of(ordinary_study(30))
    copied = optuna_study(taken).get_trials()
    assert [t.number for t in copied] == [t.number for t in taken.trials]
    for ours, theirs in zip(taken.trials, copied, strict=True):
        assert dict(ours.configuration) == theirs.params
        assert dict(ours.reports) == theirs.intermediate_values
        assert theirs.value == ours.value
        assert theirs.datetime_start is not None
        assert theirs.datetime_start.astimezone(UTC) == ours.started_at


def test_copy_for_optuna_keeps_numbers_when_trials_are_left_out() -> None:
    copied = optuna_study(snapshot_of(ordinary_study(10)), {2, 7}).get_trials()
    assert [t.number for t in copied if t.params] == [2, 7]


def test_given_distribution_is_used_and_widened_for_a_value_outside() -> None:
    given = optuna.distributions.FloatDistribution(1e-4, 1e-1, log=True)
    study = snapshot(trial(0, value=1.0, lr=1e-3), trial(1, value=2.0, lr=0.5))
    taken = type(study)(name="s", direction="minimize", trials=study.trials, distributions={"lr": given})
    used = optuna_study(taken).get_trials()[0].distributions["lr"]
    assert used == optuna.distributions.FloatDistribution(1e-4, 0.5, log=True)


def test_choices_true_and_one_stay_apart() -> None:
    params = [t.params["a"] for t in optuna_study(ODD_STUDIES["mixed kinds"]).get_trials()[:5]]
    assert params == ["None", "True", "1", "x", "2.5"]


def test_evenly_drawn_values_over_two_decades_are_not_taken_for_log() -> None:
    even = snapshot(*[trial(i, value=i, x=0.001 + i / 20) for i in range(20)])
    distribution = optuna_study(even).get_trials()[0].distributions["x"]
    assert isinstance(distribution, optuna.distributions.FloatDistribution)
    assert not distribution.log


def test_times_without_zone_are_utc() -> None:
    from studies.figures.overview import duration_s, utc

    naive = START.replace(tzinfo=None)
    assert utc(naive) == START
    assert duration_s(trial(0, value=1.0, started_at=naive, seconds=7)) == timedelta(seconds=7).total_seconds()
