"""Trials that a pruner puts to rest: they hold no slot, go on when they are promoted, and are pruned at the end."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from automl.pruners.asha_promote import AshaPromotePruner
from automl.samplers.random import RandomSampler
from automl.scheduler import Done, Prune, Resume, Scheduler, Start, Wait
from studies.trial import Trial, TrialState
from tests.automl.conftest import Search
from tests.helpers.toy import SPACE, loss_after
from tests.helpers.trials import make_trial

HALVING = "tests.helpers.pruners:Halving"
COMPLETE, PAUSED = TrialState.COMPLETE, TrialState.PAUSED
PRUNED, RUNNING = TrialState.PRUNED, TrialState.RUNNING


def scheduler() -> Scheduler:
    pruner = AshaPromotePruner("minimize", 27, min_epochs=3)
    return Scheduler(space=SPACE, sampler=RandomSampler("minimize"), pruner=pruner, seed=0)


def at_rung(number: int, loss: float, state: TrialState = PAUSED) -> Trial:
    return make_trial(number, {"x": loss}, state=state, reports=[loss] * 3)


def test_trial_that_rests_does_not_go_on_while_nobody_promotes_it() -> None:
    trials = [at_rung(0, 0.5), at_rung(1, 0.4)]
    assert isinstance(scheduler().next_action(trials, trials), Start)
    assert scheduler().resumed(trials, trials) is None


def test_promoted_trial_goes_before_a_new_one_and_after_an_interrupted_one() -> None:
    trials = [at_rung(0, 0.5), at_rung(1, 0.4), at_rung(2, 0.3)]
    assert scheduler().next_action(trials, trials) == Resume(trial=trials[2])
    interrupted = make_trial(3, {"x": 0.9}, state=PAUSED, reports=[0.9])
    assert scheduler().next_action([*trials, interrupted], [*trials, interrupted]) == Resume(trial=interrupted)


def test_at_the_end_the_best_goes_on_and_the_rest_is_pruned() -> None:
    trials = [at_rung(0, 0.5), at_rung(1, 0.4)]
    assert scheduler().next_action(trials, trials, 2) == Resume(trial=trials[1])
    running = [trials[0], at_rung(1, 0.4, RUNNING)]
    assert scheduler().next_action(running, running[:1], 2) == Wait()
    complete = [trials[0], make_trial(1, reports=[0.4] * 27, value=0.4)]
    assert scheduler().next_action(complete, complete[:1], 2) == Prune(trial=trials[0])
    pruned = [at_rung(0, 0.5, TrialState.PRUNED), complete[1]]
    assert scheduler().next_action(pruned, [], 2) == Done(reason="all 2 trials ended")


def test_trial_that_was_paused_here_and_is_not_free_yet_is_waited_for() -> None:
    assert scheduler().next_action([at_rung(0, 0.5)], [], 1) == Wait()


def check_halving(trials: Sequence[Trial]) -> None:
    """Everybody has ended, complete or at a rung, and of those who came to a rung the better half went on."""
    for trial in trials:
        x = trial.configuration["x"]
        assert isinstance(x, float)
        assert trial.reports == {epoch: loss_after(epoch, x) for epoch in range(1, trial.last_epoch + 1)}
        assert (trial.state, trial.last_epoch) == (COMPLETE, 8) or (trial.state is PRUNED and trial.last_epoch < 8)
    for rung in (1, 2, 4):
        ranked = sorted((t for t in trials if rung in t.reports), key=lambda t: t.reports[rung])
        assert all(trial.last_epoch > rung for trial in ranked[: len(ranked) // 2])


def test_search_with_promotion_ends_with_everybody_at_a_rung(toy_search: Search) -> None:
    outcome = toy_search(pruner=HALVING, trials=12, epochs=8)
    trials = outcome.study.trials()
    assert outcome.exit_code == 0
    assert outcome.reason == "all 12 trials ended"
    check_halving(trials)
    stopped = Counter(trial.last_epoch for trial in trials)
    assert stopped[1] > stopped[4]


def test_search_that_goes_on_has_the_survivors_of_an_unbroken_one(toy_search: Search, tmp_path: Path) -> None:
    whole = toy_search(pruner=HALVING, trials=12, epochs=8, study="whole").study.trials()
    parts: Sequence[Trial] = ()
    for seconds in (1e-6, 1e-6, None):  # each of the first runs ends at its first look at the time
        parts = toy_search(pruner=HALVING, trials=12, epochs=8, study="parts", timeout=seconds).study.trials()
    assert [trial.reports for trial in parts] == [trial.reports for trial in whole]
    assert [trial.state for trial in parts] == [trial.state for trial in whole]


def test_raised_limit_lets_new_trials_compete_with_what_was_pruned(toy_search: Search) -> None:
    toy_search(pruner=HALVING, trials=6, epochs=8)
    trials = toy_search(pruner=HALVING, trials=12, epochs=8).study.trials()
    assert len(trials) == 12
    assert all(trial.state.is_ended for trial in trials)


def test_single_trial_is_trained_to_its_end(toy_search: Search) -> None:
    (trial,) = toy_search(pruner=HALVING, trials=1, epochs=8).study.trials()
    assert (trial.state, trial.last_epoch) == (TrialState.COMPLETE, 8)
