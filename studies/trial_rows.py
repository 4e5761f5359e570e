"""The rows of one trial: born, found, changed. Each function runs in the caller's transaction.

Who writes to a trial that runs first changes its row in `automl_trials`, on a condition: that is the lock of the trial,
and the proof that the writer may write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Double, bindparam, func, select, update

from studies.errors import NotClaimableError, TrialNotFoundError
from studies.joint_writes import Row, insert_jointly
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
    "FoundTrial",
    "attribute_rows",
    "find_trial",
    "find_trials",
    "insert_trial",
    "replace_parameters",
    "set_state",
    "state_of",
    "write_own_row",
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
class FoundTrial:
    """A trial as its rows tell of it now.

    Attributes:
        owner: who holds the lease; None without one.
        expires_in_s: what is left of the lease, below 0 when it is over; None without a lease.
        is_ours: whether it has a row of our own; False for one that plain Optuna made.
    """

    id: int
    number: int
    state: TrialState
    attempt: int
    owner: str | None
    expires_in_s: float | None
    is_ours: bool


def insert_trial(
    connection: Connection,
    study_id: int,
    number: int,
    state: TrialState,
    configuration: Mapping[str, JsonScalar],
    parameters: Sequence["StoredParameter"],
    attributes: Mapping[str, object],
    *,
    owner: str | None = None,
    ttl_s: float = 0.0,
    imported: bool = False,
) -> int:
    """Insert a trial with its parameters, its own row and its lease; its key in the database.

    Args:
        connection: holds the transaction.
        study_id: its study, which is locked.
        number: its number in the study.
        state: where it stands from the beginning.
        configuration: what is to be trained.
        parameters: the same as Optuna stores it.
        attributes: facts about it.
        owner: who holds its lease, for its first attempt; None: nobody, and it was never started.
        ttl_s: how long the lease lasts.
        imported: whether it was trained elsewhere.
    """
    own = {
        "study_id": study_id,
        "configuration": to_json(dict(configuration), "the configuration"),
        "infeasible": state is TrialState.INFEASIBLE,
        "imported": imported,
    }
    if owner is None:
        own_row = Row(automl_trials, (), {**own, "attempt": 0})
    else:
        lease = {"attempt": 1, "owner": owner, "expires_at": ttl_s}
        own_row = Row(automl_trials, (), {**own, **lease}, from_now=("expires_at",))
    birth = _BORN_QUEUED if state is TrialState.QUEUED else _BORN_ENDED if state.is_ended else _BORN
    born = {"study": study_id, "new_number": number, "new_state": OPTUNA_STATES[state]}
    rows = [own_row, *_parameter_rows(parameters), *attribute_rows(attributes)]
    return insert_jointly(connection, birth, born, rows)


_BORN_QUEUED = optuna.trials.insert().values(
    study_id=bindparam("study"), number=bindparam("new_number"), state=bindparam("new_state")
)
_BORN = _BORN_QUEUED.values(datetime_start=utc_now())
_BORN_ENDED = _BORN.values(datetime_complete=utc_now())
_FIRST_LEASE = (
    update(automl_trials)
    .where(automl_trials.c.trial_id == bindparam("trial"))
    .values(
        attempt=1,
        owner=bindparam("new_owner"),
        expires_at=epoch_now() + bindparam("ttl_s", type_=Double),
        revision=automl_trials.c.revision + 1,
    )
)


def replace_parameters(connection: Connection, trial_id: int, parameters: Sequence["StoredParameter"]) -> None:
    """Write parameters of a trial that may have some already."""
    rows = [{"trial_id": trial_id, **row.values} for row in _parameter_rows(parameters)]
    upsert(connection, optuna.trial_params, ["trial_id", "param_name"], rows)


def _parameter_rows(parameters: Sequence["StoredParameter"]) -> list[Row]:
    return [
        Row(
            optuna.trial_params,
            ("param_name",),
            {
                "param_name": parameter.name,
                "param_value": parameter.internal_value,
                "distribution_json": parameter.distribution_json,
            },
        )
        for parameter in parameters
    ]


def write_own_row(
    connection: Connection,
    study_id: int,
    trial_id: int,
    configuration: Mapping[str, JsonScalar] | None,
    *,
    owner: str,
    ttl_s: float,
) -> None:
    """Give a queued trial its lease, and its whole configuration where it is new (None: it stays as it is)."""
    if configuration is not None:
        row = {
            "trial_id": trial_id,
            "study_id": study_id,
            "configuration": to_json(dict(configuration), "the configuration"),
            "attempt": 0,
            "infeasible": False,
        }
        upsert(connection, automl_trials, ["trial_id"], [row])
    connection.execute(_FIRST_LEASE, {"trial": trial_id, "new_owner": owner, "ttl_s": ttl_s})


_FIND = (
    select(
        optuna.trials.c.trial_id,
        optuna.trials.c.number,
        optuna.trials.c.state,
        automl_trials.c.attempt,
        automl_trials.c.owner,
        automl_trials.c.infeasible,
        (automl_trials.c.expires_at - epoch_now()).label("expires_in_s"),
    )
    .select_from(optuna.trials.outerjoin(automl_trials, automl_trials.c.trial_id == optuna.trials.c.trial_id))
    .where(
        optuna.trials.c.study_id == bindparam("study"),
        optuna.trials.c.trial_id.in_(bindparam("trials", expanding=True)),
    )
)


def find_trials(connection: Connection, study_id: int, trial_ids: Sequence[int]) -> dict[int, FoundTrial]:
    """Look at trials of a study, without locking them: key -> trial; those that do not exist are left out."""
    rows = connection.execute(_FIND, {"study": study_id, "trials": list(trial_ids)})
    return {
        row.trial_id: FoundTrial(
            id=row.trial_id,
            number=row.number,
            state=state_of(row.state, row.attempt, row.infeasible),
            attempt=row.attempt or 0,
            owner=row.owner,
            expires_in_s=row.expires_in_s,
            is_ours=row.attempt is not None,
        )
        for row in rows
    }


def find_trial(connection: Connection, study_id: int, study: str, trial_id: int) -> FoundTrial:
    """Look at one trial, without locking it.

    Raises:
        TrialNotFoundError: the study has no such trial.
    """
    found = find_trials(connection, study_id, [trial_id])
    if not found:
        raise TrialNotFoundError(trial_id, study)
    return found[trial_id]


def set_state(connection: Connection, trial: FoundTrial, state: TrialState) -> None:
    """Change the state of a trial, and its times, unless it changed since it was looked at.

    Raises:
        NotClaimableError: it changed meanwhile.
        ValueError: no trial may go that way.
    """
    if not trial.state.may_become(state):
        raise ValueError(f"trial {trial.number} is {trial.state.value} and cannot become {state.value}")
    trials = optuna.trials.c
    values: dict[str, Any] = {"state": OPTUNA_STATES[state]}
    if state is TrialState.RUNNING:
        values["datetime_start"] = func.coalesce(trials.datetime_start, utc_now())
    if state.is_ended:
        values["datetime_complete"] = utc_now()
    statement = update(optuna.trials).where(trials.trial_id == trial.id, trials.state == OPTUNA_STATES[trial.state])
    if connection.execute(statement.values(values)).rowcount != 1:
        raise NotClaimableError(trial.number, "somebody else was quicker")


def attribute_rows(attributes: Mapping[str, object]) -> list[Row]:
    """Facts on a trial as Optuna stores user attributes."""
    texts = {key: to_json(value, f"attribute {key!r}") for key, value in attributes.items()}
    return [
        Row(optuna.trial_user_attributes, ("key",), {"key": key, "value_json": text}) for key, text in texts.items()
    ]
