"""What the owner of a trial may write, and who becomes its owner. Each function runs in the caller's transaction.

A lease is checked under a lock on the trial, in the transaction that writes: an owner that was replaced can write
nothing, however late it wakes up.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, select, update

from studies.errors import LeaseLostError, NotClaimableError
from studies.identity import is_alive
from studies.json_text import metrics_from_json, metrics_to_json
from studies.ledger_rows import insert_checkpoint
from studies.schema import optuna_tables as optuna
from studies.schema.clock import epoch_now
from studies.schema.tables import automl_reports, automl_trials
from studies.study_rows import StudyRow
from studies.trial import CheckpointRecord, Lease, TrialState
from studies.trial_rows import LockedTrial, lock_trial, lock_trials, set_lease, set_state, set_trial_attributes
from studies.upsert import upsert

__all__ = ["claim", "end", "free_trials", "is_free", "pause", "read_metrics", "renew", "report"]


def report(
    connection: Connection,
    study: StudyRow,
    lease: Lease,
    epoch: int,
    value: float,
    metrics: Mapping[str, float],
    checkpoint: CheckpointRecord | None,
) -> None:
    """Store what an epoch has brought; the same epoch again replaces it.

    Raises:
        LeaseLostError: the lease is void.
    """
    _lock_held(connection, study, lease)
    if lease.attempt > 1:
        _forget_later_epochs(connection, lease, epoch)
    upsert(connection, optuna.intermediate_values, ["trial_id", "step"], [_intermediate(lease.trial_id, epoch, value)])
    row = {
        "trial_id": lease.trial_id,
        "epoch": epoch,
        "attempt": lease.attempt,
        "metrics": metrics_to_json(metrics),
    }
    upsert(connection, automl_reports, ["trial_id", "epoch"], [row])
    if checkpoint is not None:
        insert_checkpoint(connection, lease, checkpoint)


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
    trial = lock_trials(connection, study.id, [lease.trial_id]).get(lease.trial_id)
    if not is_first_try and trial is not None and (trial.attempt, trial.state) == (lease.attempt, state):
        return  # the first try was committed, only its answer was lost
    trial = _held(trial, lease)
    if state is TrialState.PRUNED:
        value = _last_value(connection, lease.trial_id)
    if value is not None:
        row = {"trial_id": lease.trial_id, "objective": 0, "value": value, "value_type": "FINITE"}
        upsert(connection, optuna.trial_values, ["trial_id", "objective"], [row])
    set_trial_attributes(connection, lease.trial_id, attributes)
    set_state(connection, trial, state)
    set_lease(connection, lease.trial_id, attempt=lease.attempt, owner=None, ttl_s=0.0)


def pause(connection: Connection, study: StudyRow, lease: Lease, *, is_first_try: bool) -> None:
    """Let a trial rest; anyone may go on with it at once.

    Raises:
        LeaseLostError: the lease is void.
    """
    end(connection, study, lease, TrialState.PAUSED, None, {}, is_first_try=is_first_try)


def claim(connection: Connection, study: StudyRow, trial_id: int, owner: str, ttl_s: float) -> Lease:
    """Become the owner of a trial that nobody works on; the attempt number rises, so that the old owner is refused.

    Raises:
        NotClaimableError: somebody works on it, or it has ended.
        TrialNotFoundError: there is none of that key.
    """
    trial = lock_trial(connection, study.id, study.name, trial_id)
    if not trial.is_ours or not trial.state.may_become(TrialState.RUNNING):
        raise NotClaimableError(trial.number, f"it is {trial.state.value}")
    if trial.state is TrialState.QUEUED:
        raise NotClaimableError(trial.number, "it is queued and was never started; start it instead")
    if trial.state is TrialState.RUNNING and not is_free(trial.owner, trial.expires_in_s):
        raise NotClaimableError(trial.number, f"{trial.owner} holds it for another {trial.expires_in_s or 0.0:.0f} s")
    set_state(connection, trial, TrialState.RUNNING)
    set_lease(connection, trial_id, attempt=trial.attempt + 1, owner=owner, ttl_s=ttl_s)
    return Lease(trial_id=trial_id, number=trial.number, attempt=trial.attempt + 1)


def is_free(owner: str | None, expires_in_s: float | None) -> bool:
    """Whether nobody works on a RUNNING trial: its lease is over, or its owner is known to be dead."""
    if owner is None or expires_in_s is None:
        return False
    return expires_in_s <= 0.0 or is_alive(owner) is False


def free_trials(connection: Connection, study_id: int) -> frozenset[int]:
    """The keys of the trials that `claim` would give."""
    trials, own = optuna.trials.c, automl_trials.c
    query = (
        select(trials.trial_id, trials.state, own.owner, (own.expires_at - epoch_now()).label("expires_in_s"))
        .select_from(optuna.trials.join(automl_trials, own.trial_id == trials.trial_id))
        .where(trials.study_id == study_id, trials.state.in_(("WAITING", "RUNNING")), own.attempt > 0)
    )
    rows = connection.execute(query)
    return frozenset(r.trial_id for r in rows if r.state == "WAITING" or is_free(r.owner, r.expires_in_s))


def renew(connection: Connection, study: StudyRow, leases: Sequence[Lease], ttl_s: float) -> tuple[Lease, ...]:
    """Let leases last for another `ttl_s` seconds from now; the ones that are void."""
    trials = lock_trials(connection, study.id, [lease.trial_id for lease in leases])
    lost = tuple(lease for lease in leases if _void(trials.get(lease.trial_id), lease))
    held = [lease.trial_id for lease in leases if lease not in lost]
    if held:
        statement = update(automl_trials).where(automl_trials.c.trial_id.in_(held))
        connection.execute(statement.values(expires_at=epoch_now() + ttl_s))
    return lost


def read_metrics(connection: Connection, trial_id: int) -> dict[int, dict[str, float]]:
    """Read everything that was measured: epoch -> metric -> value."""
    table = automl_reports.c
    rows = connection.execute(
        select(table.epoch, table.metrics).where(table.trial_id == trial_id).order_by(table.epoch)
    )
    return {row.epoch: metrics_from_json(row.metrics) for row in rows}


def _lock_held(connection: Connection, study: StudyRow, lease: Lease) -> LockedTrial:
    return _held(lock_trials(connection, study.id, [lease.trial_id]).get(lease.trial_id), lease)


def _held(trial: LockedTrial | None, lease: Lease) -> LockedTrial:
    reason = _void(trial, lease)
    if reason or trial is None:
        raise LeaseLostError(lease, reason)
    return trial


def _void(trial: LockedTrial | None, lease: Lease) -> str:
    """Why a lease is void; empty when it holds."""
    if trial is None:
        return "the trial was deleted"
    if trial.state is not TrialState.RUNNING:
        return f"the trial is {trial.state.value}"
    if trial.attempt != lease.attempt:
        return f"{trial.owner} works on it in attempt {trial.attempt}"
    return ""


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


def _intermediate(trial_id: int, epoch: int, value: float) -> dict[str, object]:
    return {
        "trial_id": trial_id,
        "step": epoch,
        "intermediate_value": value,
        "intermediate_value_type": "FINITE",
    }


def _last_value(connection: Connection, trial_id: int) -> float | None:
    """The last reported objective, which Optuna stores as the value of a pruned trial."""
    table = optuna.intermediate_values.c
    query = select(table.intermediate_value).where(table.trial_id == trial_id).order_by(table.step.desc()).limit(1)
    value: float | None = connection.scalar(query)
    return value
