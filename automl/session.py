"""One run of a search from a valid specification to its outcome: open, train, measure the winner, say how it ended."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from automl import warm_start
from automl.artifact_mark import check_mark, is_marked, set_mark
from automl.artifacts import Artifacts, artifacts_root
from automl.continuation import (
    changed_limits,
    check_same_data,
    check_space,
    continued,
    keep_space,
    limits_of,
    note_code,
    said_fields,
    stored_fields,
    stored_form,
)
from automl.cost_limits import CostLimits
from automl.env import prepare_joined_cluster, prepare_private_cluster
from automl.errors import InvalidSpecError, SearchCutOffError, WorkersLostError
from automl.evaluation import measure_on_test_split, test_score
from automl.executors.base import Executor
from automl.interrupt import Interrupt, interruptible
from automl.network_promise import promise_of
from automl.observer import Observer
from automl.outbox import Outbox
from automl.plan import plan_mistakes
from automl.plugin_options import make_pruner, make_sampler
from automl.recent import RecentStudy, remember_study
from automl.report_page import write_report_page
from automl.results import source_named
from automl.scheduler import Scheduler
from automl.search_loop import LEASE_S, Ending, SearchLoop
from automl.spec import SearchSpec
from automl.stopping import StoppingRule
from automl.warm_start import Fitted
from search_spaces.versions import SpaceHistory
from studies.checkpoints import CheckpointLedger
from studies.errors import StorageError, StudyNotFoundError
from studies.identity import process_identity
from studies.leases import LeaseKeeper
from studies.sharing import sharing_warnings
from studies.storage import Storage
from studies.study import Study, View
from studies.trial import Trial
from trainers.errors import ArtifactStoreError, TrialError, UserCodeError

__all__ = ["SearchOutcome", "make_executor", "run"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutcome:
    """What a search leaves behind.

    Attributes:
        spec: the specification that was run.
        study: the study, still open.
        reason: why the search ended, in words.
        best: the best complete trial; None when no trial completed.
        test: the best trial's metrics on the test split; None when it was not measured.
        report: path or URL of the report page; None when the search was interrupted, or the page could not be written.
        exit_code: 0 done, 1 too many failures in a row, 3 nothing completed, 130 or 143 interrupted.
    """

    spec: SearchSpec
    study: Study
    reason: str
    best: Trial | None
    test: Mapping[str, float] | None
    report: str | None
    exit_code: int


def run(spec: SearchSpec, explicit: Mapping[str, object], observer: Observer) -> SearchOutcome:
    """Run a valid specification.

    The study is created last, so that bad data, and a cluster that cannot be used, leave nothing behind.

    Args:
        spec: the specification.
        explicit: the fields that were given rather than defaulted; only they change a study that exists.
        observer: is told what happens.
    """
    storage = Storage(spec.storage)
    study = _existing(storage, spec.study)
    is_new, began_at = study is None, None if study is None else study.standing.now
    if study is not None:
        spec = continued(stored_fields(study), spec, explicit)
        history = check_space(study, spec.search_space)
        check_mark(_artifacts(spec, storage.url), study)  # before anything of it is removed or replaced
        _deliver_kept_results(spec, study, _scheduler(spec, history))
        study.set_limits(limits_of(spec), changed_limits(study, explicit))
        if (reason := _why_nothing_is_left(study, spec)) is not None:
            return _outcome(spec, study, Ending(reason=reason, has_failed=False), None)
    if spec.tensorboard:
        _artifacts(spec, storage.url).check_tensorboard()
    results = _results_to_learn_from(spec, explicit, study)
    observer.prepare(f"reading the data '{spec.data.source}'")
    data = _loaded(spec)
    observer.prepare("starting the workers" if spec.executor == "inline" else "starting the workers on Ray")
    with Interrupt(storage.hurry) as interrupt, make_executor(spec, data, interrupt.check) as executor:
        interrupt.take_over()
        study = _opened(storage, spec, explicit, spec.make_trainer().fingerprint(data))
        if is_new:  # another process may have made it meanwhile, with other limits
            study.set_limits(limits_of(spec), changed_limits(study, explicit))
        with _cut_off_in_words(study, interrupt):
            history = keep_space(study, spec.search_space)
            for note in spec.search_space.notes:
                _log.warning("study=%s space '%s': %s", study.name, spec.search_space.name, note)
            if results is not None:
                added = warm_start.add(study, results, once=True)
                _log.info("study=%s learns from %d imported trials (%s)", study.name, added, results.source)
            began_at = study.standing.now if began_at is None else began_at
            ending = _search(spec, study, history, began_at, data, executor, interrupt, observer)
            best = study.best_trial()
            if best is not None and interrupt.signal is None and spec.make_trainer().can_evaluate():
                as_present = replace(best, configuration=history.adopt(best.configuration) or best.configuration)
                observer.prepare(f"measuring trial {best.number} on the test split")
                measure_on_test_split(spec, study, _artifacts(spec, study.storage_url), executor, as_present, interrupt)
    return _outcome(spec, study, ending, interrupt)


def _loaded(spec: SearchSpec) -> Any:
    """The data, on which the objective is known to be defined.

    Raises:
        BadDataError: they cannot be read, or the objective has no value on them.
        InvalidSpecError: a person's own trainer has failed to read them.
    """
    trainer, reference = spec.make_trainer(), spec.trainer_reference
    with interruptible():
        try:
            data = trainer.load(spec.data)
            trainer.check_objective(spec.metric, data)
            if mistakes := plan_mistakes(spec, trainer, data):
                raise InvalidSpecError(mistakes, "the search")
            return data
        except UserCodeError as error:
            raise InvalidSpecError([f"data: {error}"], "the search; --debug shows where") from error
        except (TrialError, MemoryError, InvalidSpecError):
            raise
        except Exception as error:
            if ":" not in reference and trainer.code_digest() is None:
                raise
            problem = f"data: {reference} cannot load them: {type(error).__name__}: {error}"
            raise InvalidSpecError([problem], "the search; --debug shows where") from error


def _deliver_kept_results(spec: SearchSpec, study: Study, scheduler: Scheduler) -> None:
    """Store what an earlier run on this machine could not."""
    with _cut_off_in_words(study):
        delivered = Outbox(study.name, study.storage_url).deliver(study)
        ledger = CheckpointLedger(study, _artifacts(spec, study.storage_url).root, scheduler.weights_needed)
        for number in delivered:
            ledger.trim(study.trials()[number])


def _results_to_learn_from(spec: SearchSpec, explicit: Mapping[str, object], study: Study | None) -> Fitted | None:
    """What the warm start brings; None without one.

    Raises:
        InvalidSpecError: the results cannot be read, or none fits the space.
        StudyNotFoundError: there is no such study to learn from.
    """
    if spec.warm_start is None:
        return None
    space = spec.search_space
    history = SpaceHistory([], space) if study is None else check_space(study, space)
    source = source_named(spec.warm_start, spec.storage if "storage" in explicit else None, history)
    results = warm_start.fit(source, history, spec.objective_direction)
    if results.left_out:
        _log.warning("%d results of %s do not fit, such as %s", len(results.left_out), source.name, results.left_out[0])
    return results


@contextmanager
def _cut_off_in_words(study: Study, interrupt: Interrupt | None = None) -> Iterator[None]:
    """Let a database that stays away, or workers that are gone, end the search as failed or interrupted."""
    try:
        yield
    except (StorageError, WorkersLostError) as error:
        raise SearchCutOffError(
            f"{error}\nthe study keeps what it has stored; go on with: automl resume {study.name}",
            exit_code=1 if interrupt is None or interrupt.signal is None else interrupt.exit_code,
        ) from error


def make_executor(spec: SearchSpec, data: Any, check: Callable[[], None]) -> Executor:
    """The executor that a specification names, with the data it trains on.

    Args:
        spec: the specification.
        data: what the trainer's `load` returned.
        check: is called while machines are waited for; ends that by an exception.
    """
    if spec.executor == "inline":
        from automl.executors.inline import InlineExecutor

        return InlineExecutor(spec.make_trainer(), data, spec.precision)
    if spec.ray_address is None:
        prepare_private_cluster()
    else:
        prepare_joined_cluster()
    from automl.executors.ray.executor import RayExecutor
    from automl.executors.ray.placement import Request
    from automl.executors.ray.watch import Limits

    return RayExecutor(
        spec.trainer_reference,
        data,
        request=Request(
            ranks=spec.procs_per_trial,
            gpus=spec.gpus_per_trial,
            cpus=spec.cpus_per_trial,
            memory=spec.memory_per_trial,
            spread=spec.spread,
        ),
        concurrency=spec.concurrency,
        address=spec.ray_address,
        wait_for_nodes_s=spec.wait_for_nodes,
        check=check,
        precision=spec.precision,
        limits=Limits(trial_s=spec.trial_timeout, stall_s=spec.stall_timeout or None),
    )


def _search(
    spec: SearchSpec,
    study: Study,
    history: SpaceHistory,
    began_at: float,
    data: Any,
    executor: Executor,
    interrupt: Interrupt,
    observer: Observer,
) -> Ending:
    limits = CostLimits(spec, data) if spec.make_trainer().has_networks else None
    scheduler = _scheduler(spec, history, limits)
    if (name := scheduler.sampler.scored_by) is not None:
        scheduler.sampler.score = promise_of(spec, data, name)
    for note in scheduler.sampler.notes(spec.search_space, spec.trials):
        _log.info("study=%s %s", study.name, note)
    artifacts = _artifacts(spec, study.storage_url)
    observer.begin(spec, study, executor.concurrency)
    try:
        with LeaseKeeper(study, ttl_s=LEASE_S) as keeper:
            loop = SearchLoop(
                spec=spec,
                study=study,
                scheduler=scheduler,
                executor=executor,
                keeper=keeper,
                ledger=CheckpointLedger(study, artifacts.root, scheduler.weights_needed),
                artifacts=artifacts,
                began_at=began_at,
                outbox=Outbox(study.name, study.storage_url),
                owner=process_identity(),
                interrupt=interrupt,
                observe=observer.notify,
            )
            ending = loop.run()
    finally:
        observer.end()
    return ending if limits is None else replace(ending, reason=ending.reason + limits.advice(study.trials()))


def _scheduler(spec: SearchSpec, history: SpaceHistory, limits: CostLimits | None = None) -> Scheduler:
    direction = spec.objective_direction
    return Scheduler(
        space=spec.search_space,
        sampler=make_sampler(spec.sampler, direction, spec.sampler_option),
        pruner=make_pruner(spec.pruner, direction, spec.epochs, spec.pruner_option),
        seed=spec.seed,
        earlier=history.earlier,
        refuse=None if limits is None else limits.refusal,
        inherits=spec.inherit_weights,
    )


def _outcome(spec: SearchSpec, study: Study, ending: Ending, interrupt: Interrupt | None) -> SearchOutcome:
    best = study.best_trial()
    is_interrupted = interrupt is not None and interrupt.signal is not None
    return SearchOutcome(
        spec=spec,
        study=study,
        reason=ending.reason,
        best=best,
        test=None if best is None else test_score(study, best),
        report=None if is_interrupted else _report(spec, study),
        exit_code=interrupt.exit_code if interrupt and is_interrupted else _exit_code(study.look(), ending, best),
    )


def _report(spec: SearchSpec, study: Study) -> str | None:
    """Write the report page; where that fails, as on a full disk, the search has its outcome all the same."""
    location = _artifacts(spec, study.storage_url).report
    try:
        return write_report_page(study, location)
    except (OSError, ArtifactStoreError) as error:
        _log.warning("the report %s is not written: %s", location, error)
        return None


def _exit_code(view: View, ending: Ending, best: Trial | None) -> int:
    """1 when failures ended the search before its budget was used up; otherwise by whether there is a best trial."""
    if ending.has_failed and not _is_used_up(view, view.standing.limits.trials):
        return 1
    return 3 if best is None else 0


def _opened(storage: Storage, spec: SearchSpec, explicit: Mapping[str, object], fingerprint: str) -> Study:
    """The study, ready to be written to, with its artifacts at hand.

    Raises:
        InvalidSpecError: the data are not the study's, or its artifacts cannot be written or lie elsewhere, or another
            study's are in their place.
    """
    artifacts, form = _artifacts(spec, storage.url), stored_form(spec)
    artifacts.check_store()
    known = _existing(storage, spec.study)
    if known is None and is_marked(artifacts):
        known = _existing(storage, spec.study)  # another process may have made both meanwhile
    check_mark(artifacts, known)
    missing = [] if known is None else CheckpointLedger(known, artifacts.root).missing_folders()
    if missing:
        raise InvalidSpecError(
            [
                f"artifacts: no checkpoint of study '{spec.study}' lies below {artifacts.root}; give --artifacts where "
                f"they are, or make the folder '{missing[0]}' there to start its unfinished trials anew"
            ],
            f"the continuation of study '{spec.study}'",
        )
    artifacts.make_root()
    study = storage.create_study(
        spec.study, direction=spec.objective_direction, specification=form, limits=limits_of(spec)
    )
    check_same_data(study, fingerprint)
    note_code(study, spec.make_trainer().code_digest())
    set_mark(artifacts, study)
    for warning in sharing_warnings(study, storage.file):
        _log.warning("%s", warning)
    if known is not None:
        # Only what was said now: another process may have changed the rest since it was read.
        said = {name: form[name] for name in said_fields(explicit) if name in form}
        study.update_specification({**form, **study.specification, **said})
    remember_study(RecentStudy(name=spec.study, storage=storage.url, artifacts=artifacts.root))
    return study


def _existing(storage: Storage, name: str) -> Study | None:
    try:
        return storage.open_study(name)
    except StudyNotFoundError:
        return None


def _artifacts(spec: SearchSpec, storage_url: str) -> Artifacts:
    return Artifacts(root=artifacts_root(spec.artifacts, storage_url, spec.study), study=spec.study)


def _why_nothing_is_left(study: Study, spec: SearchSpec) -> str | None:
    """Why a run would find nothing to do: a limit is reached, and the winner is measured. None: there is work."""
    best = study.best_trial()
    if best is not None and test_score(study, best) is None and spec.make_trainer().can_evaluate():
        return None
    view = study.look()
    if _is_used_up(view, spec.trials):
        return f"nothing left to do, {view.claimed} of {spec.trials} trials have ended"
    rule = StoppingRule(direction=spec.objective_direction, began_at=view.standing.now)
    stop = rule.stop(view.trials, replace(view.standing, limits=limits_of(spec)))
    return None if stop is None else f"nothing left to do, {stop.reason}"


def _is_used_up(view: View, budget: int | None) -> bool:
    is_at_rest = all(trial.state.is_ended or trial.is_foreign for trial in view.trials if trial.is_counted)
    return budget is not None and is_at_rest and view.claimed >= budget
