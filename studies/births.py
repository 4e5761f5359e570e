"""How trials come into a study: numbered without gaps, within the budget.

Each function runs in the caller's transaction.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from studies.errors import BudgetSpentError, NotClaimableError, NumberTakenError
from studies.json_text import to_json
from studies.parameters import StoredParameter
from studies.schema import optuna_tables as optuna
from studies.schema.tables import automl_trials
from studies.study_rows import StudyRow, lock_study
from studies.trial import JsonScalar, Lease, TrialState
from studies.trial_rows import (
    LockedTrial,
    count_places,
    insert_parameters,
    insert_trial,
    lock_trial,
    set_lease,
    set_state,
    set_trial_attributes,
)
from studies.upsert import upsert

__all__ = ["create_running", "insert_ended", "insert_queued", "start"]

_FIRST_ATTEMPT = 1


def create_running(
    connection: Connection,
    study: StudyRow,
    number: int,
    configuration: Mapping[str, JsonScalar],
    parameters: Sequence[StoredParameter],
    attributes: Mapping[str, object],
    *,
    owner: str,
    budget: int | None,
    ttl_s: float,
) -> Lease:
    """Insert a trial that runs at once.

    Raises:
        BudgetSpentError: every place is claimed.
        NumberTakenError: `number` is not the next one.
    """
    _claim_place(connection, study, budget, number)
    trial_id = insert_trial(connection, study.id, number, TrialState.RUNNING, configuration, parameters)
    set_lease(connection, trial_id, attempt=_FIRST_ATTEMPT, owner=owner, ttl_s=ttl_s)
    set_trial_attributes(connection, trial_id, attributes)
    return Lease(trial_id=trial_id, number=number, attempt=_FIRST_ATTEMPT)


def insert_ended(
    connection: Connection,
    study: StudyRow,
    number: int,
    configuration: Mapping[str, JsonScalar],
    parameters: Sequence[StoredParameter],
    attributes: Mapping[str, object],
) -> int:
    """Insert a trial that was refused before it ran; its key.

    Raises:
        NumberTakenError: `number` is not the next one.
    """
    _claim_place(connection, study, None, number)
    trial_id = insert_trial(connection, study.id, number, TrialState.INFEASIBLE, configuration, parameters)
    set_trial_attributes(connection, trial_id, attributes)
    # Optuna takes a constraint above 0 for violated; the list is the form that its dashboard also reads.
    row = {"trial_id": trial_id, "key": "constraints", "value_json": to_json([1.0], "constraints")}
    upsert(connection, optuna.trial_system_attributes, ["trial_id", "key"], [row])
    return trial_id


def insert_queued(
    connection: Connection,
    study: StudyRow,
    configuration: Mapping[str, JsonScalar],
    parameters: Sequence[StoredParameter],
) -> int:
    """Insert a trial that waits for somebody to start it; its key."""
    lock_study(connection, study)
    number = count_places(connection, study.id).next_number
    return insert_trial(connection, study.id, number, TrialState.QUEUED, configuration, parameters)


def start(
    connection: Connection,
    study: StudyRow,
    trial_id: int,
    configuration: Mapping[str, JsonScalar] | None,
    parameters: Sequence[StoredParameter],
    *,
    owner: str,
    budget: int | None,
    ttl_s: float,
) -> Lease:
    """Start a queued trial; now it takes its place in the budget.

    Raises:
        BudgetSpentError: every place is claimed.
        NotClaimableError: it is not queued any more.
        TrialNotFoundError: there is none of that key.
        ValueError: no configuration is given, and plain Optuna queued the trial.
    """
    _claim_place(connection, study, budget, None)
    trial = lock_trial(connection, study.id, study.name, trial_id)
    if trial.state is not TrialState.QUEUED:
        raise NotClaimableError(trial.number, f"it is {trial.state.value}, no longer queued")
    if configuration is not None:
        insert_parameters(connection, trial_id, parameters)
        _write_own_row(connection, study, trial, configuration)
    elif not trial.is_ours:
        raise ValueError(f"trial {trial.number} was queued by Optuna; give its whole configuration and distributions")
    set_state(connection, trial, TrialState.RUNNING)
    set_lease(connection, trial_id, attempt=_FIRST_ATTEMPT, owner=owner, ttl_s=ttl_s)
    return Lease(trial_id=trial_id, number=trial.number, attempt=_FIRST_ATTEMPT)


def _claim_place(connection: Connection, study: StudyRow, budget: int | None, number: int | None) -> None:
    lock_study(connection, study)
    places = count_places(connection, study.id)
    if budget is not None and places.claimed >= budget:
        raise BudgetSpentError(places.claimed, budget)
    if number is not None and number != places.next_number:
        raise NumberTakenError(number, places.next_number)


def _write_own_row(
    connection: Connection, study: StudyRow, trial: LockedTrial, configuration: Mapping[str, JsonScalar]
) -> None:
    row = {
        "trial_id": trial.id,
        "study_id": study.id,
        "configuration": to_json(dict(configuration), "the configuration"),
        "attempt": 0,
        "infeasible": False,
    }
    upsert(connection, automl_trials, ["trial_id"], [row])
