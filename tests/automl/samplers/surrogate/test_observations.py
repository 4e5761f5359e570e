"""What a model is shown of trials that were trained for different lengths."""

import numpy as np
import pytest

from automl.randomness import suggestion_generator
from automl.samplers.surrogate.observations import Observations, observations
from automl.samplers.surrogate.records import Records
from automl.samplers.surrogate_evolution import SurrogateEvolutionSampler
from search_spaces.parameters import Float
from search_spaces.space import SearchSpace
from studies.trial import Trial, TrialState
from tests.helpers.trials import make_trial

LINE = SearchSpace("line", {"x": Float(low=0.0, high=1.0)})
PAUSED, PRUNED, COMPLETE = TrialState.PAUSED, TrialState.PRUNED, TrialState.COMPLETE


def trained(number: int, losses: list[float], state: TrialState, x: float = 0.5) -> Trial:
    value = losses[-1] if state is COMPLETE else None
    return make_trial(number, {"x": x}, state=state, reports=losses, value=value)


def seen(*trials: Trial) -> Observations:
    records = Records(LINE, "minimize")
    records.look(trials)
    return observations(records, np.arange(len(trials)))


def test_trainings_of_one_length_are_what_they_reported() -> None:
    found = seen(trained(0, [0.5, 0.4], COMPLETE), trained(1, [0.3, 0.6], COMPLETE))
    assert not found.differ
    assert found.losses.tolist() == [0.4, 0.6]
    assert found.fidelity.tolist() == [1.0, 1.0]


def test_longer_ones_also_tell_what_they_reported_where_others_ended() -> None:
    found = seen(
        trained(0, [0.9], PAUSED),
        trained(1, [0.8, 0.7, 0.6], PRUNED),
        trained(2, [0.5, 0.4, 0.3] + [0.2] * 6, COMPLETE),
    )
    assert found.differ
    assert found.trials.tolist() == [0, 1, 2, 1, 2]
    assert found.losses.tolist() == [0.9, 0.6, 0.2, 0.8, 0.3]
    assert found.fidelity == pytest.approx([0.0, 0.5, 1.0, 0.0, 0.5])


def test_what_cannot_be_trained_cannot_be_at_any_length() -> None:
    found = seen(
        trained(0, [0.9], PAUSED),
        trained(1, [0.5, 0.4], COMPLETE),
        make_trial(2, {"x": 0.2}, state=TrialState.INFEASIBLE),
    )
    assert found.is_bad.tolist() == [False, False, True, False]
    assert found.fidelity.tolist() == [0.0, 1.0, 1.0, 0.0]


def test_imported_results_without_reports_count_as_full_trainings() -> None:
    found = seen(trained(0, [0.9], PAUSED), trained(1, [0.5, 0.4], COMPLETE), make_trial(2, {"x": 0.2}, value=0.7))
    assert found.fidelity.tolist()[:3] == [0.0, 1.0, 1.0]


def test_short_trainings_that_mislead_are_seen_through() -> None:
    """After one epoch small values look better, after nine large ones are; few were trained to the end."""
    rng = np.random.default_rng(0)
    trials = []
    for number, x in enumerate(rng.random(24)):
        is_full = number % 4 == 0
        losses = [float(x)] + [float(1.0 - x)] * (8 if is_full else 0)
        trials.append(trained(number, losses, COMPLETE if is_full else PAUSED, x=float(x)))
    sampler = SurrogateEvolutionSampler("minimize")
    proposed = [float(str(sampler.suggest(LINE, trials, suggestion_generator(seed, 24))["x"])) for seed in range(8)]
    assert np.median(proposed) > 0.9
