import pytest

from studies.trial import TrialState


def test_ended_states_lead_nowhere_and_the_others_somewhere() -> None:
    for state in TrialState:
        assert any(state.may_become(after) for after in TrialState) is not state.is_ended


def test_every_state_but_the_born_ones_is_reached() -> None:
    reached = {after for after in TrialState for state in TrialState if state.may_become(after)}
    assert set(TrialState) - reached == {TrialState.QUEUED, TrialState.INFEASIBLE}


@pytest.mark.parametrize("state", TrialState)
def test_place_in_the_budget_is_taken_at_the_start_and_never_given_back(state: TrialState) -> None:
    assert all(after.is_counted for after in TrialState if state.may_become(after))
