"""How trials come into a study: numbered without gaps, within the budget.

Each function runs in the caller's transaction. The study is locked first, so that one process at a time adds a trial;
what it then knows of the other trials is the newest there is.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from studies.errors import BudgetSpentError, NotClaimableError, NumberTakenError, StudyNotFoundError
from studies.json_text import to_json
from studies.parameters import StoredParameter
from studies.schema import optuna_tables as optuna
from studies.snapshot import Snapshot
from studies.study_rows import StudyRow, lock_study, study_names
from studies.trial import JsonScalar, Lease, Trial, TrialState
from studies.trial_rows import (
    find_trial,
    insert_trial,
    replace_parameters,
    set_state,
    write_own_row,
)
from studies.upsert import upsert

__all__ = ["create_running", "find_queued", "insert_imported", "insert_infeasible", "insert_queued", "start"]

_FIRST_ATTEMPT = 1


def create_running(
    connection: Connection,
    study: StudyRow,
    known: Snapshot,
    number: int,
    configuration: Mapping[str, JsonScalar],
    parameters: Sequence[StoredParameter],
    attributes: Mapping[str, object],
    *,
    owner: str,
    ttl_s: float,
    is_first_try: bool,
) -> Lease:
    """Insert a trial that runs at once; one that an earlier try has inserted, whose answer was lost, is found again.

    Raises:
        BudgetSpentError: every place is claimed.
        NumberTakenError: `number` is not the next one.
    """
    budget = _lock(connection, study, known)
    if not is_first_try and (born := known.first_lease(number, owner)) is not None:
        return born
    _check_place(known, budget)
    _check_number(known, number)
    trial_id = insert_trial(
        connection,
        study.id,
        number,
        TrialState.RUNNING,
        configuration,
        parameters,
        attributes,
        owner=owner,
        ttl_s=ttl_s,
    )
    return Lease(trial_id=trial_id, number=number, attempt=_FIRST_ATTEMPT, owner=owner)


def insert_infeasible(
    connection: Connection,
    study: StudyRow,
    known: Snapshot,
    number: int,
    configuration: Mapping[str, JsonScalar],
    parameters: Sequence[StoredParameter],
    attributes: Mapping[str, object],
) -> int:
    """Insert a trial that was refused before it ran; its key.

    Raises:
        NumberTakenError: `number` is not the next one.
    """
    _lock(connection, study, known)
    _check_number(known, number)
    trial_id = insert_trial(connection, study.id, number, TrialState.INFEASIBLE, configuration, parameters, attributes)
    # Optuna takes a constraint above 0 for violated; the list is the form that its dashboard also reads.
    row = {"trial_id": trial_id, "key": "constraints", "value_json": to_json([1.0], "constraints")}
    upsert(connection, optuna.trial_system_attributes, ["trial_id", "key"], [row])
    return trial_id


def insert_imported(
    connection: Connection,
    study: StudyRow,
    known: Snapshot,
    number: int | None,
    trials: Sequence[tuple[Mapping[str, JsonScalar], Sequence[StoredParameter], float, Mapping[str, object]]],
) -> int:
    """Insert complete trials of elsewhere, each as (configuration, parameters, value, attributes); how many.

    Raises:
        NumberTakenError: `number` is not the next one; None: it does not matter.
    """
    _lock(connection, study, known)
    if number is not None:
        _check_number(known, number)
    for number, (configuration, parameters, value, attributes) in enumerate(trials, start=known.next_number):
        trial_id = insert_trial(
            connection, study.id, number, TrialState.COMPLETE, configuration, parameters, attributes, imported=True
        )
        row = {"trial_id": trial_id, "objective": 0, "value": value, "value_type": "FINITE"}
        connection.execute(optuna.trial_values.insert(), row)
    return len(trials)


def insert_queued(
    connection: Connection,
    study: StudyRow,
    known: Snapshot,
    number: int | None,
    trials: Sequence[tuple[Mapping[str, JsonScalar], Sequence[StoredParameter], Mapping[str, object]]],
) -> tuple[int, ...]:
    """Insert trials that wait for somebody to start them, each as (configuration, parameters, attributes); keys.

    Raises:
        NumberTakenError: `number` is not the next one; None: it does not matter.
    """
    _lock(connection, study, known)
    if number is not None:
        _check_number(known, number)
    keys = []
    for number, (configuration, parameters, attributes) in enumerate(trials, start=known.next_number):
        trial_id = insert_trial(connection, study.id, number, TrialState.QUEUED, configuration, parameters, attributes)
        keys.append(trial_id)
    return tuple(keys)


def find_queued(
    connection: Connection,
    known: Snapshot,
    numbers: Sequence[int],
    trials: Sequence[tuple[Mapping[str, JsonScalar], Sequence[StoredParameter], Mapping[str, object]]],
) -> tuple[int, ...]:
    """Find what an earlier try of `insert_queued` has inserted, whose answer was lost; keys, empty: nothing.

    Args:
        connection: holds the transaction.
        known: what is known of the study.
        numbers: the numbers at which the earlier tries began.
        trials: as for `insert_queued`.
    """
    known.refresh(connection)
    for number in numbers:
        there = known.trials()[number : number + len(trials)]
        if len(there) == len(trials) and all(map(_is_wish, there, trials)):
            return tuple(trial.id for trial in there)
    return ()


def _is_wish(
    trial: Trial, wish: tuple[Mapping[str, JsonScalar], Sequence[StoredParameter], Mapping[str, object]]
) -> bool:
    # It may have been started and completed by the sampler already.
    configuration, _, attributes = wish
    return configuration.items() <= trial.configuration.items() and attributes.items() <= trial.attributes.items()


def start(
    connection: Connection,
    study: StudyRow,
    known: Snapshot,
    trial_id: int,
    configuration: Mapping[str, JsonScalar] | None,
    parameters: Sequence[StoredParameter],
    *,
    owner: str,
    ttl_s: float,
    is_first_try: bool,
) -> Lease:
    """Start a queued trial; now it takes its place in the budget. For later tries see `create_running`.

    Raises:
        BudgetSpentError: every place is claimed.
        NotClaimableError: it is not queued any more.
        TrialNotFoundError: there is none of that key.
        ValueError: no configuration is given, and plain Optuna queued the trial.
    """
    budget = _lock(connection, study, known)
    trial = find_trial(connection, study.id, study.name, trial_id)
    if not is_first_try and (started := known.first_lease(trial.number, owner)) is not None:
        return started
    _check_place(known, budget)
    if trial.state is not TrialState.QUEUED:
        raise NotClaimableError(trial.number, f"it is {trial.state.value}, no longer queued")
    if configuration is None and not trial.is_ours:
        raise ValueError(f"trial {trial.number} was queued by Optuna; give its whole configuration and distributions")
    set_state(connection, trial, TrialState.RUNNING)
    if configuration is not None:
        replace_parameters(connection, trial_id, parameters)
    write_own_row(connection, study.id, trial_id, configuration, owner=owner, ttl_s=ttl_s)
    return Lease(trial_id=trial_id, number=trial.number, attempt=_FIRST_ATTEMPT, owner=owner)


def _lock(connection: Connection, study: StudyRow, known: Snapshot) -> int | None:
    """Let no other process add a trial until the transaction ends, and look at all that are there; the budget.

    Raises:
        StudyNotFoundError: the study was deleted.
    """
    # What was read with the lock would be as old as the wait for it.
    standing = known.refresh(connection) if lock_study(connection, study.id) else None
    if standing is None:
        raise StudyNotFoundError(study.name, study_names(connection), "the database")
    return standing.limits.trials


def _check_place(known: Snapshot, budget: int | None) -> None:
    if budget is not None and known.claimed >= budget:
        raise BudgetSpentError(known.claimed, budget)


def _check_number(known: Snapshot, number: int) -> None:
    if number != known.next_number:
        raise NumberTakenError(number, known.next_number)
