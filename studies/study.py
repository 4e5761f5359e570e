"""A study: the trials of one search, shared by all its processes. Every public call that writes is one transaction."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from studies import attempts, births, ledger_rows, study_rows
from studies.json_text import to_json
from studies.names import Direction, check_keys
from studies.parameters import StoredParameter, check_compatible, stored_parameters
from studies.ranking import best_of
from studies.snapshot import Snapshot
from studies.study_rows import StudyRow
from studies.summaries import count_states
from studies.transactions import Transactions
from studies.trial import CheckpointRecord, JsonScalar, Lease, Trial, TrialState

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

__all__ = ["Study"]


class Study:
    """A search as the database remembers it; made by `Storage.create_study` and `Storage.open_study`.

    The life of a trial: `create_trial` gives a lease; its holder calls `report` after each epoch and `tell` at the end,
    or `pause`. Whoever finds a trial in `claimable` takes it over with `claim`, and the old lease is void from then on.
    Safe for threads. Trials are frozen copies.
    """

    def __init__(
        self, row: StudyRow, transactions: Transactions, load_optuna_study: "Callable[[], optuna.Study]"
    ) -> None:
        self._row = row
        self._transactions = transactions
        self._load_optuna_study = load_optuna_study
        self._snapshot = Snapshot(transactions, row.id)
        self._compatible: frozenset[tuple[str, str]] = frozenset()

    @property
    def id(self) -> int:
        """Key in the database."""
        return self._row.id

    @property
    def name(self) -> str:
        """Name, unique in its database."""
        return self._row.name

    @property
    def direction(self) -> Direction:
        """`maximize` or `minimize`."""
        return self._row.direction

    @property
    def storage_url(self) -> str:
        """The address of its database for people: absolute, without a password."""
        return self._transactions.shown

    @property
    def specification(self) -> dict[str, Any]:
        """All that is needed to go on with the search, plain JSON; empty for a study that plain Optuna made."""
        return self._transactions.read(lambda c: study_rows.read_specification(c, self.id))

    def update_specification(self, specification: Mapping[str, Any]) -> None:
        """Replace the specification."""
        self._transactions.write(lambda c: study_rows.write_specification(c, self._row, specification))

    @property
    def attributes(self) -> dict[str, Any]:
        """Facts stored on the study, plain JSON; Optuna calls them user attributes."""
        return self._transactions.read(lambda c: study_rows.read_study_attributes(c, self.id))

    def set_attribute(self, key: str, value: object) -> None:
        """Store a fact; `value` is plain JSON.

        Raises:
            InvalidNameError: the key does not fit.
            ValueError: the value is not plain JSON.
        """
        check_keys("attribute", [key])
        text = to_json(value, f"attribute {key!r}")
        self._transactions.write(lambda c: study_rows.write_study_attribute(c, self.id, key, text))

    # Looking at trials

    def trials(self, states: Collection[TrialState] | None = None) -> tuple[Trial, ...]:
        """Read the trials, in order of their numbers; ended ones are read from the database only once.

        Args:
            states: keep only trials in these states; None: all.
        """
        trials = self._snapshot.refreshed()
        return trials if states is None else tuple(trial for trial in trials if trial.state in states)

    def best_trial(self, k: int = 1) -> Trial | None:
        """The `k`-th best COMPLETE trial; None when there are fewer. See `best_trials`."""
        best = self.best_trials(k)
        return best[k - 1] if len(best) == k else None

    def best_trials(self, k: int) -> tuple[Trial, ...]:
        """The `k` best COMPLETE trials, best first; see `ranking.best_of`."""
        return best_of(self.trials(), self.direction, k)

    def counts(self) -> Mapping[TrialState, int]:
        """Count the trials in every state, without reading them."""
        counts = self._transactions.read(lambda c: count_states(c, self.id))
        return counts.get(self.id, dict.fromkeys(TrialState, 0))

    def reports(self, trial: Trial | Lease) -> Mapping[int, Mapping[str, float]]:
        """Everything measured in a trial: epoch -> metric -> value; empty for a trial of plain Optuna."""
        return self._transactions.read(lambda c: attempts.read_metrics(c, _key(trial)))

    def as_optuna(self) -> "optuna.Study":
        """Open the same study with Optuna, for its figures and tools."""
        return self._load_optuna_study()

    # Bringing trials in

    def create_trial(
        self,
        number: int,
        configuration: Mapping[str, JsonScalar],
        distributions: "Mapping[str, BaseDistribution]",
        *,
        owner: str,
        budget: int | None = None,
        ttl_s: float = 60.0,
        attributes: Mapping[str, object] | None = None,
    ) -> Lease:
        """Claim a place in the budget and start a trial, in one transaction.

        Args:
            number: the number that the configuration was suggested for: `len(study.trials())`.
            configuration: parameter name -> value.
            distributions: where the values came from; may hold parameters that are not active.
            owner: this process; see `process_identity`.
            budget: how many trials may hold a place in the study; None: any number.
            ttl_s: seconds until somebody else may take the trial over unless the lease is renewed.
            attributes: facts about the suggestion, plain JSON.

        Raises:
            BudgetSpentError: every place is claimed.
            NumberTakenError: another process created a trial meanwhile; look at the study and suggest again.
            IncompatibleDistributionError: a parameter changed its kind since earlier trials.
            ValueError: the configuration does not fit its distributions.
        """
        parameters, facts = stored_parameters(configuration, distributions), _checked(attributes)

        def work(connection: Connection) -> Lease:
            self._check_compatible(connection, parameters)
            return births.create_running(
                connection, self._row, number, configuration, parameters, facts, owner=owner, budget=budget, ttl_s=ttl_s
            )

        return self._transactions.write(work)

    def add_infeasible(
        self,
        number: int,
        configuration: Mapping[str, JsonScalar],
        distributions: "Mapping[str, BaseDistribution]",
        cause: str,
    ) -> int:
        """Remember a configuration that was refused before training; it takes a number but no place in the budget.

        Args:
            number: as in `create_trial`.
            configuration: as in `create_trial`.
            distributions: as in `create_trial`.
            cause: why, for people; stored as the attribute `error`, while `Trial.cause` is `infeasible`.

        Returns:
            The trial's key in the database.

        Raises:
            NumberTakenError: as in `create_trial`.
            IncompatibleDistributionError: as in `create_trial`.
            ValueError: as in `create_trial`.
        """
        parameters = stored_parameters(configuration, distributions)
        facts = {"cause": "infeasible", "error": cause}

        def work(connection: Connection) -> int:
            self._check_compatible(connection, parameters)
            return births.insert_ended(connection, self._row, number, configuration, parameters, facts)

        return self._transactions.write(work)

    def enqueue(self, configuration: Mapping[str, JsonScalar], distributions: "Mapping[str, BaseDistribution]") -> int:
        """Queue a configuration that is to be tried; the trial's key in the database.

        Raises:
            IncompatibleDistributionError: a parameter changed its kind since earlier trials.
            ValueError: the configuration does not fit its distributions.
        """
        parameters = stored_parameters(configuration, distributions)

        def work(connection: Connection) -> int:
            self._check_compatible(connection, parameters)
            return births.insert_queued(connection, self._row, configuration, parameters)

        return self._transactions.write(work)

    def start_queued(
        self,
        trial_id: int,
        configuration: Mapping[str, JsonScalar] | None = None,
        distributions: "Mapping[str, BaseDistribution] | None" = None,
        *,
        owner: str,
        budget: int | None = None,
        ttl_s: float = 60.0,
    ) -> Lease:
        """Start a queued trial; it takes its place in the budget now.

        Args:
            trial_id: key of a QUEUED trial.
            configuration: the one to be trained. None: the trial's own, which is whole when `enqueue` made it; the
                queue of plain Optuna holds only what a person fixed, and must be completed.
            distributions: as in `create_trial`; given together with `configuration`.
            owner: as in `create_trial`.
            budget: as in `create_trial`.
            ttl_s: as in `create_trial`.

        Raises:
            BudgetSpentError: every place is claimed.
            NotClaimableError: somebody else was quicker.
            TrialNotFoundError: the study has no such trial.
            IncompatibleDistributionError: a parameter changed its kind since earlier trials.
            ValueError: the configuration does not fit its distributions.
        """
        if (configuration is None) != (distributions is None):
            raise ValueError("configuration and distributions are given together, or neither of them")
        parameters = stored_parameters(configuration or {}, distributions or {})

        def work(connection: Connection) -> Lease:
            self._check_compatible(connection, parameters)
            return births.start(
                connection, self._row, trial_id, configuration, parameters, owner=owner, budget=budget, ttl_s=ttl_s
            )

        return self._transactions.write(work)

    # What the holder of a lease may do

    def report(
        self,
        lease: Lease,
        epoch: int,
        value: float,
        metrics: Mapping[str, float] | None = None,
        checkpoint: CheckpointRecord | None = None,
    ) -> None:
        """Store what an epoch has brought.

        Reporting an epoch again replaces it: a trial that goes on from a checkpoint trains the epochs after it anew.

        Args:
            lease: the right to write.
            epoch: finished epochs, counted from 1.
            value: the objective; finite.
            metrics: everything that was measured; NaN and infinities are kept.
            checkpoint: the checkpoint of this epoch; its attempt is the lease's.

        Raises:
            LeaseLostError: the trial has another owner or has ended.
            ValueError: epoch, value or the checkpoint's path are not what they must be.
        """
        _check_epoch(epoch)
        objective = _finite(value)
        if checkpoint is not None:
            ledger_rows.check_checkpoint_path(checkpoint.path)
        self._transactions.write(
            lambda c: attempts.report(c, self._row, lease, epoch, objective, metrics or {}, checkpoint)
        )

    def tell(
        self,
        lease: Lease,
        state: TrialState,
        *,
        value: float | None = None,
        cause: str | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> None:
        """End a trial.

        Args:
            lease: the right to write; void afterwards.
            state: COMPLETE, PRUNED or FAILED.
            value: the objective of a COMPLETE trial, finite; None otherwise.
            cause: why a FAILED trial failed, one word; None otherwise.
            attributes: facts to store on the trial, plain JSON; the error's text under `error`.

        Raises:
            LeaseLostError: the trial has another owner or has ended.
            ValueError: the arguments do not fit the state.
        """
        _check_end(state, value, cause)
        facts = _checked(attributes) | ({"cause": cause} if cause is not None else {})
        number = None if value is None else _finite(value)
        self._transactions.write_knowing(
            lambda c, first: attempts.end(c, self._row, lease, state, number, facts, is_first_try=first)
        )
        self._transactions.settle()

    def pause(self, lease: Lease) -> None:
        """Let a trial rest: it keeps its place in the budget, and anyone may go on with it at once.

        Raises:
            LeaseLostError: the trial has another owner or has ended.
        """
        self._transactions.write_knowing(lambda c, first: attempts.pause(c, self._row, lease, is_first_try=first))
        self._transactions.settle()

    def renew(
        self, leases: Sequence[Lease], *, ttl_s: float = 60.0, patience_s: float | None = None
    ) -> tuple[Lease, ...]:
        """Let leases last another `ttl_s` seconds from now, also those that are over but were not taken.

        Returns:
            The leases that are lost.
        """
        if not leases:
            return ()
        return self._transactions.write(lambda c: attempts.renew(c, self._row, leases, ttl_s), patience_s=patience_s)

    # Taking trials over

    def claimable(self) -> tuple[Trial, ...]:
        """The trials that `claim` would give: PAUSED ones, and RUNNING ones whose owner is gone."""
        free = self._transactions.read(lambda c: attempts.free_trials(c, self.id))
        return tuple(trial for trial in self.trials([TrialState.PAUSED, TrialState.RUNNING]) if trial.id in free)

    def claim(self, trial_id: int, *, owner: str, ttl_s: float = 60.0) -> Lease:
        """Go on with a trial that nobody works on: PAUSED, or RUNNING with an owner that is gone.

        Its owner is gone when the lease is over by the database's clock, or when the process is known to be dead on
        this machine. Of several processes that claim at once exactly one succeeds.

        Raises:
            NotClaimableError: somebody works on it, or it has ended, or was never started.
            TrialNotFoundError: the study has no such trial.
        """
        return self._transactions.write(lambda c: attempts.claim(c, self._row, trial_id, owner, ttl_s))

    # The ledger of checkpoints

    def checkpoints(self, trial: Trial | Lease) -> tuple[CheckpointRecord, ...]:
        """Read a trial's checkpoints: the newest attempt's first, and of one attempt the one with most epochs first."""
        return self._transactions.read(lambda c: ledger_rows.read_checkpoints(c, _key(trial)))

    def trials_with_checkpoints(self) -> frozenset[int]:
        """The keys of the trials that have checkpoints in the ledger."""
        return self._transactions.read(lambda c: ledger_rows.trials_with_checkpoints(c, self.id))

    def forget_checkpoints(self, trial: Trial | Lease, records: Sequence[CheckpointRecord]) -> None:
        """Take checkpoints out of the ledger; their files are the caller's."""
        paths = [record.path for record in records]
        self._transactions.write(lambda c: ledger_rows.delete_checkpoints(c, _key(trial), paths))

    def _check_compatible(self, connection: Connection, parameters: Sequence[StoredParameter]) -> None:
        kinds = {(parameter.name, parameter.distribution_json) for parameter in parameters} - self._compatible
        if kinds:
            check_compatible(connection, self.id, kinds)
            self._compatible |= kinds


def _key(trial: Trial | Lease) -> int:
    return trial.id if isinstance(trial, Trial) else trial.trial_id


def _check_epoch(epoch: object) -> None:
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1:
        raise ValueError(f"epoch={epoch!r} is not a whole number from 1; report finished epochs")


def _finite(value: object) -> float:
    # People's own metrics arrive here: text and NaN would mislead every later comparison.
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"the objective {value!r} is not a finite number; end the trial FAILED with a cause")
    return float(value)


def _checked(attributes: Mapping[str, object] | None) -> dict[str, object]:
    facts = dict(attributes or {})
    check_keys("attribute", facts)
    if "cause" in facts:
        raise ValueError("the attribute 'cause' is set by `tell(cause=...)`; give the fact another name")
    return facts


def _check_end(state: TrialState, value: float | None, cause: str | None) -> None:
    if not (state.is_ended and TrialState.RUNNING.may_become(state)):
        raise ValueError(f"a running trial cannot end as {state.value}; tell complete, pruned or failed")
    if (state is TrialState.COMPLETE) != (value is not None):
        raise ValueError(f"a {state.value} trial with value={value!r}: exactly a complete trial has a value")
    if (state is TrialState.FAILED) != bool(cause):
        raise ValueError(f"a {state.value} trial with cause={cause!r}: exactly a failed trial has a cause")
