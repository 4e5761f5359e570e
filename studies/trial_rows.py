"""The rows of one trial: born, locked, changed, ended. Each function runs in the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, case, func, select, update

from studies.errors import TrialNotFoundError
from studies.json_text import to_json
from studies.schema import optuna_tables as optuna
from studies.schema.clock import epoch_now, utc_now
from studies.schema.tables import automl_trials
from studies.trial import JsonScalar, TrialState
from studies.upsert import upsert

if TYPE_CHECKING:
    from studies.parameters import StoredParameter

__all__ = [
    "OPTUNA_STATES",
    "LockedTrial",
    "Places",
    "count_places",
    "insert_parameters",
    "insert_trial",
    "lock_trial",
    "lock_trials",
    "set_lease",
    "set_state",
    "set_trial_attributes",
    "state_of",
]

OPTUNA_STATES = {
    TrialState.QUEUED: "WAITING",
    TrialState.RUNNING: "RUNNING",
    TrialState.PAUSED: "WAITING",
    TrialState.COMPLETE: "COMPLETE",
    TrialState.PRUNED: "PRUNED",
    TrialState.FAILED: "FAIL",
    TrialState.INFEASIBLE: "FAIL",
}
"""How Optuna's five states hold our seven."""


def state_of(optuna_state: str, attempt: int | None, infeasible: bool | None) -> TrialState:
    """Our state, from Optuna's and our own row; `attempt` and `infeasible` are None for a trial of plain Optuna."""
    match optuna_state:
        case "WAITING":
            return TrialState.PAUSED if attempt else TrialState.QUEUED
        case "FAIL":
            return TrialState.INFEASIBLE if infeasible else TrialState.FAILED
        case _:
            return TrialState(optuna_state.lower())


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """How far a study is filled.

    Attributes:
        next_number: the number of the trial that is created next.
        claimed: how many trials hold a place in the budget.
    """

    next_number: int
    claimed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedTrial:
    """A trial whose row no other transaction changes.

    Attributes:
        expires_in_s: what is left of the lease, below 0 when it is over; None without a lease.
    """

    id: int
    number: int
    state: TrialState
    attempt: int
    owner: str | None
    expires_in_s: float | None
    is_ours: bool


def count_places(connection: Connection, study_id: int) -> Places:
    """Count the trials of a study that is locked."""
    is_free = ((optuna.trials.c.state == "WAITING") & (func.coalesce(automl_trials.c.attempt, 0) == 0)) | (
        (optuna.trials.c.state == "FAIL") & func.coalesce(automl_trials.c.infeasible, False)
    )
    query = (
        select(func.count(), func.coalesce(func.sum(case((is_free, 0), else_=1)), 0))
        .select_from(optuna.trials.outerjoin(automl_trials, automl_trials.c.trial_id == optuna.trials.c.trial_id))
        .where(optuna.trials.c.study_id == study_id)
    )
    number, claimed = connection.execute(query).one()
    return Places(next_number=number, claimed=claimed)


def insert_trial(
    connection: Connection,
    study_id: int,
    number: int,
    state: TrialState,
    configuration: Mapping[str, JsonScalar],
    parameters: Sequence["StoredParameter"],
) -> int:
    """Insert a trial with its parameters and its own row, without a lease; its key in the database."""
    started = utc_now() if state is not TrialState.QUEUED else None
    values = {
        "study_id": study_id,
        "number": number,
        "state": OPTUNA_STATES[state],
        "datetime_start": started,
        "datetime_complete": utc_now() if state.is_ended else None,
    }
    statement = optuna.trials.insert().values(values).returning(optuna.trials.c.trial_id)
    trial_id: int = connection.execute(statement).scalar_one()
    insert_parameters(connection, trial_id, parameters)
    own_row = {
        "trial_id": trial_id,
        "study_id": study_id,
        "configuration": to_json(dict(configuration), "the configuration"),
        "attempt": 0,
        "infeasible": state is TrialState.INFEASIBLE,
    }
    connection.execute(automl_trials.insert(), own_row)
    return trial_id


def insert_parameters(connection: Connection, trial_id: int, parameters: Sequence["StoredParameter"]) -> None:
    """Insert the parameters of a trial as Optuna stores them."""
    rows = [
        {
            "trial_id": trial_id,
            "param_name": parameter.name,
            "param_value": parameter.internal_value,
            "distribution_json": parameter.distribution_json,
        }
        for parameter in parameters
    ]
    upsert(connection, optuna.trial_params, ["trial_id", "param_name"], rows)


def lock_trials(connection: Connection, study_id: int, trial_ids: Sequence[int]) -> dict[int, LockedTrial]:
    """Lock trials of a study, in order of their keys so that two callers cannot wait for each other."""
    trials, own = optuna.trials, automl_trials
    query = (
        select(
            trials.c.trial_id,
            trials.c.number,
            trials.c.state,
            own.c.attempt,
            own.c.owner,
            own.c.infeasible,
            (own.c.expires_at - epoch_now()).label("expires_in_s"),
        )
        .select_from(trials.outerjoin(own, own.c.trial_id == trials.c.trial_id))
        .where(trials.c.study_id == study_id, trials.c.trial_id.in_(trial_ids))
        .order_by(trials.c.trial_id)
        .with_for_update(of=trials)
    )
    return {
        row.trial_id: LockedTrial(
            id=row.trial_id,
            number=row.number,
            state=state_of(row.state, row.attempt, row.infeasible),
            attempt=row.attempt or 0,
            owner=row.owner,
            expires_in_s=row.expires_in_s,
            is_ours=row.attempt is not None,
        )
        for row in connection.execute(query)
    }


def lock_trial(connection: Connection, study_id: int, study: str, trial_id: int) -> LockedTrial:
    """Lock one trial.

    Raises:
        TrialNotFoundError: the study has no such trial.
    """
    found = lock_trials(connection, study_id, [trial_id])
    if not found:
        raise TrialNotFoundError(trial_id, study)
    return found[trial_id]


def set_lease(connection: Connection, trial_id: int, *, attempt: int, owner: str | None, ttl_s: float) -> None:
    """Give the lease to an owner for `ttl_s` seconds of the database's clock, or take it away (owner None)."""
    values = {"attempt": attempt, "owner": owner, "expires_at": epoch_now() + ttl_s if owner is not None else None}
    connection.execute(update(automl_trials).where(automl_trials.c.trial_id == trial_id).values(values))


def set_state(connection: Connection, trial: LockedTrial, state: TrialState) -> None:
    """Change the state of a locked trial, and its times.

    Raises:
        ValueError: no trial may go that way.
    """
    if not trial.state.may_become(state):
        raise ValueError(f"trial {trial.number} is {trial.state.value} and cannot become {state.value}")
    values: dict[str, Any] = {"state": OPTUNA_STATES[state]}
    if state is TrialState.RUNNING:
        values["datetime_start"] = func.coalesce(optuna.trials.c.datetime_start, utc_now())
    if state.is_ended:
        values["datetime_complete"] = utc_now()
    connection.execute(update(optuna.trials).where(optuna.trials.c.trial_id == trial.id).values(values))


def set_trial_attributes(connection: Connection, trial_id: int, attributes: Mapping[str, object]) -> None:
    """Set facts on a trial, as Optuna's user attributes."""
    rows = [
        {"trial_id": trial_id, "key": key, "value_json": to_json(value, f"attribute {key!r}")}
        for key, value in attributes.items()
    ]
    upsert(connection, optuna.trial_user_attributes, ["trial_id", "key"], rows)
