"""Trials are taken from a study that others take from, too: kept, given back, given up or recorded."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from automl.asking import TAKEN_ELSEWHERE, Asker
from automl.events import Event, TrialEnded, TrialRefused
from automl.scheduler import Refuse, RejectQueued, Resume, Start, StartQueued
from search_spaces.configuration import Configuration
from studies.errors import LeaseLostError, TrialNotFoundError
from studies.leases import LeaseKeeper
from studies.storage import Storage
from studies.study import Study
from studies.trial import Lease, Trial, TrialState
from tests.helpers.toy import SPACE

LEASE_S = 60.0
ONE = Configuration({"x": 0.5})


class WatchedKeeper(LeaseKeeper):
    """Tells which leases it keeps."""

    @property
    def kept(self) -> frozenset[Lease]:
        return frozenset(self._held)


@dataclass(kw_only=True)
class Desk:
    """An asker with everything that it works on, and a second process's view of the same study."""

    study: Study
    other: Study
    keeper: WatchedKeeper
    events: list[Event] = field(default_factory=list)

    def asker(self, *, max_retries: int = 1, lease_s: float = LEASE_S) -> Asker:
        return Asker(
            self.study,
            SPACE,
            self.keeper,
            owner="us",
            lease_s=lease_s,
            max_retries=max_retries,
            observe=self.events.append,
        )

    def trial(self) -> Trial:
        return self.other.trials()[0]

    def create(self, *, owner: str = "another", ttl_s: float = LEASE_S) -> Lease:
        return self.other.create_trial(0, ONE, SPACE.distributions(), owner=owner, ttl_s=ttl_s)


@pytest.fixture
def desk(storage: str) -> Iterator[Desk]:
    with Storage(storage) as ours, Storage(storage) as theirs:
        study = ours.create_study("toy", direction="minimize")
        other = theirs.open_study("toy")
        yield Desk(study=study, other=other, keeper=WatchedKeeper(study, ttl_s=LEASE_S))


def test_new_and_queued_trials_begin_and_are_kept_on(desk: Desk) -> None:
    desk.other.enqueue([{"x": 0.25}], SPACE.distributions())
    with desk.asker().take(StartQueued(trial=desk.trial(), configuration=Configuration({"x": 0.25}))) as one:
        assert one is not None and desk.keeper.kept == {one.lease}
    with desk.asker().take(Start(number=1, configuration=ONE)) as two:
        assert two is not None
    assert desk.keeper.kept == {one.lease, two.lease}
    assert [trial.state for trial in desk.other.trials()] == [TrialState.RUNNING] * 2
    assert (one.earlier, two.earlier, two.configuration) == (None, None, ONE)
    assert desk.events == []


def test_trial_that_goes_on_brings_what_others_have_stored(desk: Desk) -> None:
    lease = desk.create()
    before = desk.study.trials()[0]
    desk.other.report(lease, 1, 0.75)
    desk.other.note(lease, {"accumulate": 4})
    desk.other.pause(lease)
    with desk.asker().take(Resume(trial=before)) as asked:
        assert asked is not None and asked.earlier is not None
    assert (dict(asked.earlier.reports), asked.earlier.attributes["accumulate"]) == ({1: 0.75}, 4)
    assert (asked.lease.attempt, asked.configuration) == (2, ONE)


def test_error_on_the_way_gives_the_trial_back(desk: Desk) -> None:
    with pytest.raises(KeyboardInterrupt), desk.asker().take(Start(number=0, configuration=ONE)):
        raise KeyboardInterrupt
    assert (desk.trial().state, desk.trial().losses) == (TrialState.PAUSED, 0)
    assert desk.keeper.kept == frozenset()


def test_error_on_the_way_is_told_though_the_trial_is_anothers_by_then(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match="no place"), desk.asker(lease_s=0.0).take(Start(number=0, configuration=ONE)):
        desk.other.claim(desk.trial().id, owner="another")
        raise ValueError("no place")
    assert "trial=0 cannot be given back" in caplog.text
    assert desk.trial().owner == "another"


def test_trial_that_was_lost_too_often_ends_and_says_so(desk: Desk) -> None:
    lease = desk.create(ttl_s=0.0)
    desk.other.report(lease, 1, 0.75)
    with desk.asker(max_retries=0).claim(lease.trial_id) as asked:
        assert asked is None
    words = "its process or machine was lost 1 times (--max-retries 0)"
    assert (desk.trial().state, desk.trial().cause, desk.trial().attributes["error"]) == (
        TrialState.FAILED,
        "lost",
        words,
    )
    assert desk.events == [
        TrialEnded(number=0, state=TrialState.FAILED, epoch=1, value=0.75, cause="lost", message=words)
    ]
    assert desk.keeper.kept == frozenset()


def test_trial_that_was_killed_for_memory_too_often_ends_as_out_of_memory(desk: Desk) -> None:
    lease = desk.create()
    desk.other.note(lease, {"memory_kills": 2})
    desk.other.pause(lease)
    with desk.asker().take(Resume(trial=desk.trial())) as asked:
        assert asked is None
    assert (desk.trial().state, desk.trial().cause) == (TrialState.FAILED, "oom")


def test_what_cannot_be_trained_is_recorded(desk: Desk) -> None:
    desk.other.enqueue([{"x": 0.25}], SPACE.distributions())
    with desk.asker().take(RejectQueued(trial=desk.trial(), reason="too small")) as rejected:
        assert rejected is None
    with desk.asker().take(Refuse(number=1, configuration=ONE, reason="no path")) as refused:
        assert refused is None
    first, second = desk.other.trials()
    assert (first.state, first.cause, first.attributes["error"]) == (TrialState.FAILED, "user_error", "too small")
    assert second.state is TrialState.INFEASIBLE
    ended, noted = desk.events
    assert isinstance(ended, TrialEnded) and ended.message == "too small"
    assert noted == TrialRefused(number=1, reason="no path")
    assert desk.keeper.kept == frozenset()


def test_another_process_that_was_first_is_told_by_an_error_and_nothing_is_kept(desk: Desk) -> None:
    lease = desk.create()
    for action in (Start(number=0, configuration=ONE), Resume(trial=desk.trial())):
        with pytest.raises(TAKEN_ELSEWHERE), desk.asker().take(action):
            pass
    with pytest.raises(TrialNotFoundError), desk.asker().claim(lease.trial_id + 1):
        pass
    assert desk.keeper.kept == frozenset() and desk.events == []
    assert desk.trial().owner == "another"


def test_lease_that_is_lost_on_the_way_is_one_of_the_errors_of_others(desk: Desk) -> None:
    with pytest.raises(TAKEN_ELSEWHERE), desk.asker().take(Start(number=0, configuration=ONE)) as asked:
        assert asked is not None
        raise LeaseLostError(asked.lease, "another has it")
    assert desk.trial().state is TrialState.PAUSED
