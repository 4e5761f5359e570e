"""What the owner of a trial may write, and who becomes its owner. Each function runs in the caller's transaction.

Every write begins with a change of the trial's own row on the condition that the lease holds: an owner that was
replaced can write nothing, however late it wakes up, and a reader sees by the row's revision that something changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, delete, exists, literal, or_, select, update
from sqlalchemy import Row as ResultRow

from studies.errors import LeaseLostError, NotClaimableError
from studies.identity import is_alive
from studies.joint_writes import Row, write_while_held
from studies.json_text import metrics_from_json, metrics_to_json
from studies.ledger_rows import checkpoint_row
from studies.schema import optuna_tables as optuna
from studies.schema.clock import epoch_now, utc_now
from studies.schema.tables import automl_reports, automl_trials
from studies.study_rows import StudyRow
from studies.trial import CheckpointRecord, Lease, TrialState
from studies.trial_rows import OPTUNA_STATES, FoundTrial, attribute_rows, find_trial, find_trials, set_state

__all__ = ["claim", "end", "is_free", "note", "pause", "read_all_metrics", "read_metrics", "renew", "report"]


_OWN = automl_trials.c
_LEASE_HOLDS = and_(
    _OWN.trial_id == bindparam("trial"),
    _OWN.attempt == bindparam("held_attempt"),
    _OWN.owner == bindparam("held_owner"),
    exists().where(
        optuna.trials.c.trial_id == bindparam("trial"),
        optuna.trials.c.study_id == bindparam("study"),
        optuna.trials.c.state == "RUNNING",
    ),
)
_GO_ON = update(automl_trials).where(_LEASE_HOLDS).values(revision=_OWN.revision + 1)
_GIVE_UP = (
    update(automl_trials)
    .where(_LEASE_HOLDS)
    .values(revision=_OWN.revision + 1, owner=None, expires_at=None, losses=_OWN.losses + bindparam("lost"))
)
_SET_STATE = update(optuna.trials).where(optuna.trials.c.trial_id == bindparam("trial"))
_PAUSE = _SET_STATE.values(state=bindparam("new_state"))
_END = _SET_STATE.values(state=bindparam("new_state"), datetime_complete=utc_now())


def report(
    connection: Connection,
    study: StudyRow,
    lease: Lease,
    epoch: int,
    value: float,
    metrics: Mapping[str, float],
    checkpoint: CheckpointRecord | None,
    question: tuple[Select[Any], Mapping[str, Any]] | None,
) -> Sequence[ResultRow[Any]]:
    """Store what an epoch has brought; the same epoch again replaces it.

    Returns:
        The answer to the question; see `joint_writes.write_while_held`.

    Raises:
        LeaseLostError: the lease is void.
    """
    step = {"step": epoch, "intermediate_value": value, "intermediate_value_type": "FINITE"}
    metrics_row = {"epoch": epoch, "attempt": lease.attempt, "metrics": metrics_to_json(metrics)}
    rows = [
        Row(optuna.intermediate_values, ("step",), step),
        Row(automl_reports, ("epoch",), metrics_row),
    ]
    if checkpoint is not None:
        rows.append(checkpoint_row(lease, checkpoint))
    answer = write_while_held(
        connection, _GO_ON, _of(study, lease), trial_id=lease.trial_id, rows=rows, question=question
    )
    if answer is None:
        raise _lost(connection, study, lease)
    if lease.attempt > 1:
        _forget_later_epochs(connection, lease, epoch)
    return answer


def note(connection: Connection, study: StudyRow, lease: Lease, attributes: Mapping[str, object]) -> None:
    """Store facts on a trial that runs on; a fact of the same name is replaced.

    Raises:
        LeaseLostError: the lease is void.
    """
    rows = attribute_rows(attributes)
    if write_while_held(connection, _GO_ON, _of(study, lease), trial_id=lease.trial_id, rows=rows) is None:
        raise _lost(connection, study, lease)


def end(
    connection: Connection,
    study: StudyRow,
    lease: Lease,
    state: TrialState,
    value: float | None,
    attributes: Mapping[str, object],
    *,
    is_first_try: bool,
) -> None:
    """End a trial.

    Raises:
        LeaseLostError: the lease is void; an ended trial never changes.
    """
    rows = attribute_rows(attributes)
    if state is TrialState.PRUNED:
        value = _last_value(connection, lease.trial_id)
    if value is not None:
        values = {"objective": 0, "value": value, "value_type": "FINITE"}
        rows.append(Row(optuna.trial_values, ("objective",), values))
    given_up = {**_of(study, lease), "lost": 0, "new_state": OPTUNA_STATES[state]}
    if write_while_held(connection, _GIVE_UP, given_up, trial_id=lease.trial_id, change=_END, rows=rows) is None:
        _check_was_done(connection, study, lease, state, is_first_try=is_first_try)


def pause(connection: Connection, study: StudyRow, lease: Lease, *, is_lost: bool, is_first_try: bool) -> None:
    """Let a trial rest; anyone may go on with it at once. `is_lost`: its worker was lost, which is counted.

    Raises:
        LeaseLostError: the lease is void.
    """
    given_up = {**_of(study, lease), "lost": int(is_lost), "new_state": OPTUNA_STATES[TrialState.PAUSED]}
    if write_while_held(connection, _GIVE_UP, given_up, trial_id=lease.trial_id, change=_PAUSE) is None:
        _check_was_done(connection, study, lease, TrialState.PAUSED, is_first_try=is_first_try)


def claim(
    connection: Connection, study: StudyRow, trial_id: int, owner: str, ttl_s: float, *, is_first_try: bool
) -> Lease:
    """Become the owner of a trial that nobody works on; the attempt number rises, so that the old owner is refused.

    When an earlier try may have claimed it, and only its answer was lost, a trial of this owner is the one it claimed.

    Raises:
        NotClaimableError: somebody works on it, or it has ended.
        TrialNotFoundError: there is none of that key.
    """
    trial = find_trial(connection, study.id, study.name, trial_id)
    if not is_first_try and (trial.state, trial.owner) == (TrialState.RUNNING, owner):
        return Lease(trial_id=trial_id, number=trial.number, attempt=trial.attempt, owner=owner)
    _check_claimable(trial)
    is_lost = trial.state is TrialState.RUNNING
    values = {
        "attempt": trial.attempt + 1,
        "owner": owner,
        "expires_at": epoch_now() + ttl_s,
        "revision": _OWN.revision + 1,
        "losses": _OWN.losses + int(is_lost),
    }
    # The owner may have renewed its lease since it was looked at, unless it is known to be dead.
    is_dead = literal(trial.owner is not None and is_alive(trial.owner) is False)
    is_still_free = or_(_OWN.owner.is_(None), _OWN.expires_at <= epoch_now(), is_dead)
    statement = update(automl_trials).where(_OWN.trial_id == trial_id, _OWN.attempt == trial.attempt, is_still_free)
    if connection.execute(statement.values(values)).rowcount != 1:
        raise NotClaimableError(trial.number, "somebody else was quicker")
    set_state(connection, trial, TrialState.RUNNING)
    return Lease(trial_id=trial_id, number=trial.number, attempt=trial.attempt + 1, owner=owner)


def is_free(owner: str | None, expires_in_s: float | None) -> bool:
    """Whether nobody works on a RUNNING trial: its lease is over, or its owner is known to be dead."""
    if owner is None or expires_in_s is None:
        return False
    return expires_in_s <= 0.0 or is_alive(owner) is False


def renew(connection: Connection, study: StudyRow, leases: Sequence[Lease], ttl_s: float) -> tuple[Lease, ...]:
    """Let leases last for another `ttl_s` seconds from now; the ones that are void.

    A lease whose row somebody else has locked is left to the next time, where the server can tell: nobody takes it over
    meanwhile, and the others, and whoever wants to write to them, are not held up by it.
    """
    trials = find_trials(connection, study.id, [lease.trial_id for lease in leases])
    lost = tuple(lease for lease in leases if _void(trials.get(lease.trial_id), lease))
    held = [
        and_(_OWN.trial_id == lease.trial_id, _OWN.attempt == lease.attempt, _OWN.owner == lease.owner)
        for lease in leases
        if lease not in lost
    ]
    if held:
        free = connection.scalars(select(_OWN.trial_id).where(or_(*held)).with_for_update(skip_locked=True)).all()
        statement = update(automl_trials).where(_OWN.trial_id.in_(free), or_(*held))
        connection.execute(statement.values(expires_at=epoch_now() + ttl_s))
    return lost


def read_all_metrics(connection: Connection, study_id: int) -> dict[int, dict[int, dict[str, float]]]:
    """Read everything that was measured in a study: trial key -> epoch -> metric -> value."""
    table, trials = automl_reports.c, optuna.trials.c
    query = (
        select(table.trial_id, table.epoch, table.metrics)
        .select_from(automl_reports.join(optuna.trials, trials.trial_id == table.trial_id))
        .where(trials.study_id == study_id)
        .order_by(table.trial_id, table.epoch)
    )
    metrics: dict[int, dict[int, dict[str, float]]] = {}
    for row in connection.execute(query):
        metrics.setdefault(row.trial_id, {})[row.epoch] = metrics_from_json(row.metrics)
    return metrics


def read_metrics(connection: Connection, trial_id: int) -> dict[int, dict[str, float]]:
    """Read everything that was measured: epoch -> metric -> value."""
    table = automl_reports.c
    rows = connection.execute(
        select(table.epoch, table.metrics).where(table.trial_id == trial_id).order_by(table.epoch)
    )
    return {row.epoch: metrics_from_json(row.metrics) for row in rows}


def _of(study: StudyRow, lease: Lease) -> dict[str, int | str]:
    return {"study": study.id, "trial": lease.trial_id, "held_attempt": lease.attempt, "held_owner": lease.owner}


def _check_was_done(
    connection: Connection, study: StudyRow, lease: Lease, state: TrialState, *, is_first_try: bool
) -> None:
    """Accept a lease that is void because an earlier try gave it up, and only the answer to that was lost.

    Raises:
        LeaseLostError: it is void for another reason.
    """
    trial = find_trials(connection, study.id, [lease.trial_id]).get(lease.trial_id)
    is_done = trial is not None and (trial.attempt, trial.state) == (lease.attempt, state)
    if is_first_try or not is_done:
        raise _lost(connection, study, lease)


def _lost(connection: Connection, study: StudyRow, lease: Lease) -> LeaseLostError:
    trial = find_trials(connection, study.id, [lease.trial_id]).get(lease.trial_id)
    return LeaseLostError(lease, _void(trial, lease) or "it was taken at this moment")


def _void(trial: FoundTrial | None, lease: Lease) -> str:
    """Why a lease is void; empty when it holds."""
    if trial is None:
        return "the trial was deleted"
    if trial.state is not TrialState.RUNNING:
        return f"the trial is {trial.state.value}"
    if (trial.attempt, trial.owner) != (lease.attempt, lease.owner):
        return f"{trial.owner or 'another program'} works on it in attempt {trial.attempt}"
    return ""


def _check_claimable(trial: FoundTrial) -> None:
    if not trial.is_ours or not trial.state.may_become(TrialState.RUNNING):
        raise NotClaimableError(trial.number, f"it is {trial.state.value}")
    if trial.state is TrialState.QUEUED:
        raise NotClaimableError(trial.number, "it is queued and was never started; start it instead")
    if trial.state is TrialState.RUNNING and not is_free(trial.owner, trial.expires_in_s):
        raise NotClaimableError(trial.number, f"{trial.owner} holds it for another {trial.expires_in_s or 0.0:.0f} s")


def _forget_later_epochs(connection: Connection, lease: Lease, epoch: int) -> None:
    # A trial goes on from its last checkpoint: what an older attempt reported beyond it is about to be trained again.
    reports = automl_reports.c
    later = (reports.trial_id == lease.trial_id) & (reports.epoch > epoch) & (reports.attempt < lease.attempt)
    steps = optuna.intermediate_values.c
    stale = select(reports.epoch).where(later)
    connection.execute(
        delete(optuna.intermediate_values).where(steps.trial_id == lease.trial_id, steps.step.in_(stale))
    )
    connection.execute(delete(automl_reports).where(later))


def _last_value(connection: Connection, trial_id: int) -> float | None:
    """The last reported objective, which Optuna stores as the value of a pruned trial."""
    table = optuna.intermediate_values.c
    query = select(table.intermediate_value).where(table.trial_id == trial_id).order_by(table.step.desc()).limit(1)
    value: float | None = connection.scalar(query)
    return value
