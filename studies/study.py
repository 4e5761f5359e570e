"""A study: the trials of one search, shared by all its processes. Every public call that writes is one transaction."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from studies import attempts, births, ledger_rows, space_rows, standing, study_rows
from studies.errors import StudyNotFoundError
from studies.json_text import from_json, to_json
from studies.names import Direction, check_keys
from studies.parameters import StoredParameter, check_compatible, stored_parameters
from studies.picture import Picture
from studies.ranking import best_of
from studies.snapshot import Snapshot
from studies.standing import Limits, Standing
from studies.study_rows import StudyRow
from studies.summaries import count_states
from studies.transactions import Transactions
from studies.trial import CheckpointRecord, JsonScalar, Lease, Trial, TrialState

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

__all__ = ["Study", "View"]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A study at one moment.

    Attributes:
        trials: all trials, in order of their numbers.
        claimable: those that `Study.claim` would give: PAUSED ones, and RUNNING ones whose owner is gone.
        claimed: how many trials hold a place in the budget.
        standing: the study's rules, and how far it is.
    """

    trials: tuple[Trial, ...]
    claimable: tuple[Trial, ...]
    claimed: int
    standing: Standing


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
        self._snapshot = Snapshot(row)
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
    def token(self) -> str | None:
        """A random word that no other study has, not even a later one of its name; a copied database keeps it.

        None: an older form of the tables or plain Optuna made the study.
        """
        return self._row.token

    @property
    def storage_url(self) -> str:
        """The address of its database for people: absolute, without a password."""
        return self._transactions.shown

    @property
    def writers(self) -> int:
        """How many threads of this process may usefully write at the same time, each to trials of its own."""
        return self._transactions.writers

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

    def space_versions(self) -> tuple[dict[str, Any], ...]:
        """Read every form that the search space has had, the oldest first; plain JSON."""
        return self._transactions.read(lambda c: space_rows.space_versions(c, self.id))

    def add_space_version(self, description: Mapping[str, Any]) -> int:
        """Store the present form of the search space, unless it is the latest one already.

        Returns:
            The number of the version, counted from 1.

        Raises:
            ValueError: the description is not plain JSON.
        """
        return self._transactions.write(lambda c: space_rows.add_space_version(c, self.id, description))

    # The rules of the whole study

    @property
    def limits(self) -> Limits:
        """When the study has had enough, whoever searches."""
        return self.standing.limits

    def set_limits(self, limits: Limits, names: Collection[str] = standing.LIMIT_NAMES) -> None:
        """Replace limits; every process that searches obeys them from its next look on.

        Args:
            limits: the new ones.
            names: which of them to take, so that nobody undoes what another process has changed: fields of `Limits`.
        """
        if not names:
            return

        def work(connection: Connection) -> None:
            study_rows.ensure_own_row(connection, self.id)
            standing.write_limits(connection, self.id, limits, names)

        self._transactions.write(work)

    def raise_trials(self, at_least: int) -> None:
        """Let the study have at least so many trials; nothing to do where their number is not limited."""
        self._transactions.write(lambda c: standing.raise_trials(c, self.id, at_least))

    @property
    def standing(self) -> Standing:
        """The limits, and how far the study is, without looking at trials."""
        return self._transactions.read(lambda c: standing.read_standing(c, self.id))

    def stop(self) -> None:
        """Ask every process that searches now to end after the running epochs; later runs are not meant."""

        def work(connection: Connection) -> None:
            study_rows.ensure_own_row(connection, self.id)
            standing.request_stop(connection, self.id)

        self._transactions.write(work)

    # Looking at trials

    def look(self) -> View:
        """Look at everything that decides what to do next, in one reading.

        Raises:
            StudyNotFoundError: the study was deleted.
        """
        return self._view(self._transactions.read(self._snapshot.look))

    def _view(self, seen: Picture) -> View:
        if seen.standing is None:
            raise StudyNotFoundError(self.name, self._transactions.read(study_rows.study_names), self.storage_url)
        return View(trials=seen.trials, claimable=seen.claimable, claimed=seen.claimed, standing=seen.standing)

    def trials(self, states: Collection[TrialState] | None = None) -> tuple[Trial, ...]:
        """Read the trials, in order of their numbers; ended ones are read from the database only once.

        Args:
            states: keep only trials in these states; None: all.
        """
        trials = self._transactions.read(self._snapshot.look).trials
        return trials if states is None else tuple(trial for trial in trials if trial.state in states)

    def best_trial(self, k: int = 1) -> Trial | None:
        """The `k`-th best COMPLETE trial; None when there are fewer. See `best_trials`."""
        best = self.best_trials(k)
        return best[k - 1] if len(best) == k else None

    def best_trials(self, k: int) -> tuple[Trial, ...]:
        """The `k` best COMPLETE trials, best first; see `ranking.best_of`."""
        return best_of(self.trials(), self.direction, k)

    def counts(self) -> Mapping[TrialState, int]:
        """Count the trials in every state, without reading them and without imported ones."""
        counts = self._transactions.read(lambda c: count_states(c, self.id))
        return counts.get(self.id, dict.fromkeys(TrialState, 0))

    def reports(self, trial: Trial | Lease) -> Mapping[int, Mapping[str, float]]:
        """Everything measured in a trial: epoch -> metric -> value; empty for a trial of plain Optuna."""
        return self._transactions.read(lambda c: attempts.read_metrics(c, _key(trial)))

    def metrics(self) -> Mapping[int, Mapping[int, Mapping[str, float]]]:
        """Everything measured in all trials: trial key -> epoch -> metric -> value; without trials of plain Optuna."""
        return self._transactions.read(lambda c: attempts.read_all_metrics(c, self.id))

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
        ttl_s: float = 60.0,
        attributes: Mapping[str, object] | None = None,
    ) -> Lease:
        """Claim a place in the budget and start a trial, in one transaction.

        Args:
            number: the number that the configuration was suggested for: `len(study.trials())`.
            configuration: parameter name -> value.
            distributions: where the values came from; may hold parameters that are not active.
            owner: this process, which holds no trial that it does not know of; see `process_identity`.
            ttl_s: seconds until somebody else may take the trial over unless the lease is renewed.
            attributes: facts about the suggestion, plain JSON.

        Raises:
            BudgetSpentError: every place of the study's limits is claimed.
            NumberTakenError: another process created a trial meanwhile; look at the study and suggest again.
            IncompatibleDistributionError: a parameter changed its kind since earlier trials.
            ValueError: the configuration does not fit its distributions.
        """
        parameters, facts = stored_parameters(configuration, distributions), _checked(attributes)

        def work(connection: Connection, first: bool) -> Lease:
            self._check_compatible(connection, parameters)
            return births.create_running(
                connection,
                self._row,
                self._snapshot,
                number,
                configuration,
                parameters,
                facts,
                owner=owner,
                ttl_s=ttl_s,
                is_first_try=first,
            )

        lease = self._transactions.write_knowing(work)
        self._snapshot.note_birth(lease, dict(configuration), facts)
        return lease

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
            return births.insert_infeasible(
                connection, self._row, self._snapshot, number, configuration, parameters, facts
            )

        return self._transactions.write(work)

    def enqueue(
        self,
        configurations: Sequence[Mapping[str, JsonScalar]],
        distributions: "Mapping[str, BaseDistribution]",
        *,
        attributes: Sequence[Mapping[str, object]] = (),
        number: int | None = None,
    ) -> tuple[int, ...]:
        """Queue configurations that are to be tried, all or none.

        Args:
            configurations: what is fixed; the search completes what is left open.
            distributions: as in `create_trial`.
            attributes: facts about each of them, plain JSON; empty: none.
            number: the number that the first one gets, where the wish rests on the trials that were there; None: any.

        Returns:
            The trials' keys in the database.

        Raises:
            NumberTakenError: another process added a trial meanwhile; look at the study and decide again.
            IncompatibleDistributionError: a parameter changed its kind since earlier trials.
            ValueError: a configuration does not fit its distributions.
        """
        facts = [_checked(one) for one in attributes] or [_checked(None) for _ in configurations]
        queued = [
            (configuration, stored_parameters(configuration, distributions), fact)
            for configuration, fact in zip(configurations, facts, strict=True)
        ]

        tried_at: list[int] = []  # the number that the first of them had in an earlier try

        def work(connection: Connection, first: bool) -> tuple[int, ...]:
            if not first and (keys := births.find_queued(connection, self._snapshot, tried_at, queued)):
                return keys
            self._check_compatible(connection, [one for _, parameters, _ in queued for one in parameters])
            keys = births.insert_queued(connection, self._row, self._snapshot, number, queued)
            tried_at.append(self._snapshot.next_number)
            return keys

        return self._transactions.write_knowing(work)

    def add_imported(
        self,
        results: Sequence[tuple[Mapping[str, JsonScalar], float]],
        distributions: "Mapping[str, BaseDistribution]",
        *,
        attributes: Sequence[Mapping[str, object]],
        number: int | None = None,
    ) -> int:
        """Add complete trials that were trained elsewhere, all or none; they hold no place in the budget.

        Args:
            results: each configuration with its objective, which is finite.
            distributions: as in `create_trial`.
            attributes: facts about each of them, such as where it comes from; plain JSON.
            number: as in `enqueue`.

        Returns:
            How many were added.

        Raises:
            NumberTakenError: as in `enqueue`.
            IncompatibleDistributionError: a parameter changed its kind since earlier trials.
            ValueError: a configuration does not fit its distributions, or a value is not finite.
        """
        imported = [
            (configuration, stored_parameters(configuration, distributions), _finite(value), _checked(facts))
            for (configuration, value), facts in zip(results, attributes, strict=True)
        ]

        def work(connection: Connection) -> int:
            self._check_compatible(connection, [one for _, parameters, _, _ in imported for one in parameters])
            return births.insert_imported(connection, self._row, self._snapshot, number, imported)

        return self._transactions.write(work)

    def start_queued(
        self,
        trial_id: int,
        configuration: Mapping[str, JsonScalar] | None = None,
        distributions: "Mapping[str, BaseDistribution] | None" = None,
        *,
        owner: str,
        ttl_s: float = 60.0,
    ) -> Lease:
        """Start a queued trial; it takes its place in the budget now.

        Args:
            trial_id: key of a QUEUED trial.
            configuration: the one to be trained. None: the trial's own, which is whole when `enqueue` made it; the
                queue of plain Optuna holds only what a person fixed, and must be completed.
            distributions: as in `create_trial`; given together with `configuration`.
            owner: as in `create_trial`.
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

        def work(connection: Connection, first: bool) -> Lease:
            self._check_compatible(connection, parameters)
            return births.start(
                connection,
                self._row,
                self._snapshot,
                trial_id,
                configuration,
                parameters,
                owner=owner,
                ttl_s=ttl_s,
                is_first_try=first,
            )

        return self._transactions.write_knowing(work)

    # What the holder of a lease may do

    def report(
        self,
        lease: Lease,
        epoch: int,
        value: float,
        metrics: Mapping[str, float] | None = None,
        checkpoint: CheckpointRecord | None = None,
    ) -> View:
        """Store what an epoch has brought, and look at how it compares.

        Reporting an epoch again replaces it: a trial that goes on from a checkpoint trains the epochs after it anew.

        Args:
            lease: the right to write.
            epoch: finished epochs, counted from 1.
            value: the objective; finite.
            metrics: everything that was measured; NaN and infinities are kept.
            checkpoint: the checkpoint of this epoch; its attempt is the lease's.

        Returns:
            The study as it stands with this report.

        Raises:
            LeaseLostError: the trial has another owner or has ended.
            ValueError: epoch, value or the checkpoint's path are not what they must be.
        """
        _check_epoch(epoch)
        objective = _finite(value)
        if checkpoint is not None:
            ledger_rows.check_checkpoint_path(checkpoint.path)

        def work(connection: Connection, first: bool) -> Picture:
            question = self._snapshot.question() if is_first_attempt else None
            answer = attempts.report(
                connection, self._row, lease, epoch, objective, metrics or {}, checkpoint, question
            )
            rows = None if question is None else answer
            return self._snapshot.look_after_report(connection, rows, lease, epoch, objective)

        # A later attempt also forgets what an earlier one reported.
        is_first_attempt = lease.attempt == 1
        write = self._transactions.write_together if is_first_attempt else self._transactions.write_knowing
        try:
            return self._view(write(work))
        except BaseException:
            self._snapshot.forget(lease.trial_id)  # maybe it is not stored
            raise

    def note(self, lease: Lease, attributes: Mapping[str, object]) -> None:
        """Store facts on a trial while it runs, for whoever goes on with it; `tell` and `pause` keep them.

        Other processes read them when the trial rests, ends or is taken over.

        Args:
            lease: the right to write.
            attributes: plain JSON; a fact of the same name is replaced.

        Raises:
            LeaseLostError: the trial has another owner or has ended.
            InvalidNameError: a name does not fit.
            ValueError: a fact is not plain JSON.
        """
        facts = _checked(attributes)
        self._snapshot.forget(lease.trial_id)
        self._transactions.write_together(lambda c, first: attempts.note(c, self._row, lease, facts))
        self._snapshot.note_facts(lease, facts)

    def tell(
        self,
        lease: Lease,
        state: TrialState,
        *,
        value: float | None = None,
        cause: str | None = None,
        attributes: Mapping[str, object] | None = None,
        is_repeated: bool = False,
    ) -> None:
        """End a trial.

        Args:
            lease: the right to write; void afterwards.
            state: COMPLETE, PRUNED or FAILED.
            value: the objective of a COMPLETE trial, finite; None otherwise.
            cause: why a FAILED trial failed, one word; None otherwise.
            attributes: facts to store on the trial, plain JSON; the error's text under `error`.
            is_repeated: whether an earlier call that ended in a StorageError may have stored the same.

        Raises:
            LeaseLostError: the trial has another owner or has ended.
            ValueError: the arguments do not fit the state.
        """
        _check_end(state, value, cause)
        facts = _checked(attributes) | ({"cause": cause} if cause is not None else {})
        number = None if value is None else _finite(value)
        self._transactions.write_together(
            lambda c, first: attempts.end(
                c, self._row, lease, state, number, facts, is_first_try=first and not is_repeated
            )
        )
        self._snapshot.note_end(lease, state, number, facts)

    def pause(self, lease: Lease, *, is_lost: bool = False, patience_s: float | None = None) -> None:
        """Let a trial rest: it keeps its place in the budget, and anyone may go on with it at once.

        Args:
            lease: the right to write; void afterwards.
            is_lost: whether its worker was lost, which is counted in `Trial.losses`.
            patience_s: how long a busy or unreachable database is asked again; None: as long as always.

        Raises:
            LeaseLostError: the trial has another owner or has ended.
        """
        self._snapshot.forget(lease.trial_id)
        self._transactions.write_together(
            lambda c, first: attempts.pause(c, self._row, lease, is_lost=is_lost, is_first_try=first),
            patience_s=patience_s,
        )
        self._transactions.settle()

    def renew(
        self,
        leases: Sequence[Lease],
        *,
        ttl_s: float = 60.0,
        patience_s: float | None = None,
        is_last: bool = False,
    ) -> tuple[Lease, ...]:
        """Give a sign of life: the search's time goes on, and leases last another `ttl_s` seconds from now.

        So do leases that are over but were not taken. `is_last`: this process searches no longer.

        Returns:
            The leases that are lost.
        """

        def work(connection: Connection) -> tuple[Lease, ...]:
            standing.count_time(connection, self.id, is_last=is_last)
            return attempts.renew(connection, self._row, leases, ttl_s) if leases else ()

        lost = self._transactions.write(work, patience_s=patience_s)
        self._transactions.settle()
        return lost

    # Taking trials over

    def claimable(self) -> tuple[Trial, ...]:
        """The trials that `claim` would give: PAUSED ones, and RUNNING ones whose owner is gone."""
        return self._transactions.read(self._snapshot.look).claimable

    def claim(self, trial_id: int, *, owner: str, ttl_s: float = 60.0) -> Lease:
        """Go on with a trial that nobody works on: PAUSED, or RUNNING with an owner that is gone.

        Its owner is gone when the lease is over by the database's clock, or when the process is known to be dead on
        this machine; that counts in `Trial.losses`. Of several processes that claim at once exactly one succeeds. A
        process does not claim what it works on itself.

        Raises:
            NotClaimableError: somebody works on it, or it has ended, or was never started.
            TrialNotFoundError: the study has no such trial.
        """
        self._snapshot.forget(trial_id)
        return self._transactions.write_knowing(
            lambda c, first: attempts.claim(c, self._row, trial_id, owner, ttl_s, is_first_try=first)
        )

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
    facts: dict[str, object] = from_json(to_json(dict(attributes or {}), "the attributes"))  # as they are read back
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
