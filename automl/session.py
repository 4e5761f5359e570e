"""One run of a search from a valid specification to its outcome: open, train, measure the winner, say how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from automl.artifacts import Artifacts, artifacts_root
from automl.continuation import check_same_data, continued, stored_form
from automl.env import prepare_private_cluster
from automl.errors import InvalidSpecError
from automl.evaluation import measure_on_test_split, test_score
from automl.executors.base import Executor
from automl.interrupt import Interrupt
from automl.observer import Observer
from automl.recent import RecentStudy, remember_study
from automl.registry import pruner_class, sampler_class
from automl.report_page import write_report_page
from automl.scheduler import Scheduler
from automl.search_loop import LEASE_S, Ending, SearchLoop
from automl.spec import SearchSpec
from studies.checkpoints import CheckpointLedger
from studies.errors import StudyNotFoundError
from studies.identity import process_identity
from studies.leases import LeaseKeeper
from studies.storage import Storage
from studies.study import Study
from studies.trial import Trial

__all__ = ["SearchOutcome", "make_executor", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOutcome:
    """What a search leaves behind.

    Attributes:
        spec: the specification that was run.
        study: the study, still open.
        reason: why the search ended, in words.
        best: the best complete trial; None when no trial completed.
        test: the best trial's metrics on the test split; None when it was not measured.
        report: the report page; None when the search was interrupted.
        exit_code: 0 done, 1 too many failures in a row, 3 nothing completed, 130 or 143 interrupted.
    """

    spec: SearchSpec
    study: Study
    reason: str
    best: Trial | None
    test: Mapping[str, float] | None
    report: Path | None
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
    if study is not None:
        spec = continued(study.specification, spec, explicit)
        if _is_spent(study, spec):
            reason = f"nothing left to do, {_counted(study)} of {spec.trials} trials have ended"
            return _outcome(spec, study, Ending(reason=reason, has_failed=False), None)
    observer.prepare(f"reading the data '{spec.data.source}'")
    data = spec.trainer.load(spec.data)
    observer.prepare("starting the workers" if spec.executor == "inline" else "starting the workers on Ray")
    with Interrupt() as interrupt, make_executor(spec, data) as executor:
        interrupt.take_over()
        study = _opened(storage, spec, spec.trainer.fingerprint(data))
        ending = _search(spec, study, executor, interrupt, observer)
        best = study.best_trial()
        if best is not None and interrupt.signal is None:
            measure_on_test_split(spec, study, _artifacts(spec, study), executor, best, interrupt)
    return _outcome(spec, study, ending, interrupt)


def make_executor(spec: SearchSpec, data: Any) -> Executor:
    """The executor that a specification names, with the data it trains on."""
    if spec.executor == "inline":
        from automl.executors.inline import InlineExecutor

        return InlineExecutor(spec.trainer, data)
    if spec.ray_address is None:
        prepare_private_cluster()
    from automl.executors.ray.executor import RayExecutor

    return RayExecutor(
        spec.search_space.task,
        data,
        ranks=spec.procs_per_trial,
        gpus_per_trial=spec.gpus_per_trial,
        concurrency=spec.concurrency,
        address=spec.ray_address,
    )


def _search(spec: SearchSpec, study: Study, executor: Executor, interrupt: Interrupt, observer: Observer) -> Ending:
    direction = spec.objective_direction
    scheduler = Scheduler(
        space=spec.search_space,
        sampler=sampler_class(spec.sampler)(direction),
        pruner=pruner_class(spec.pruner)(direction, spec.epochs),
        budget=spec.trials,
        seed=spec.seed,
    )
    artifacts = _artifacts(spec, study)
    observer.begin(spec, study, executor.slots)
    try:
        with LeaseKeeper(study, ttl_s=LEASE_S) as keeper:
            loop = SearchLoop(
                spec=spec,
                study=study,
                scheduler=scheduler,
                executor=executor,
                keeper=keeper,
                ledger=CheckpointLedger(study, artifacts.root),
                artifacts=artifacts,
                owner=process_identity(),
                interrupt=interrupt,
                observe=observer.notify,
            )
            return loop.run()
    finally:
        observer.end()


def _outcome(spec: SearchSpec, study: Study, ending: Ending, interrupt: Interrupt | None) -> SearchOutcome:
    best = study.best_trial()
    is_interrupted = interrupt is not None and interrupt.signal is not None
    return SearchOutcome(
        spec=spec,
        study=study,
        reason=ending.reason,
        best=best,
        test=None if best is None else test_score(study, best),
        report=None if is_interrupted else write_report_page(study, _artifacts(spec, study).report),
        exit_code=interrupt.exit_code if interrupt and is_interrupted else _exit_code(spec, study, ending),
    )


def _exit_code(spec: SearchSpec, study: Study, ending: Ending) -> int:
    """1 when failures ended the search before its budget was used up; otherwise by whether there is a best trial."""
    if ending.has_failed and not _is_used_up(study, spec):
        return 1
    return 3 if study.best_trial() is None else 0


def _opened(storage: Storage, spec: SearchSpec, fingerprint: str) -> Study:
    """The study, ready to be written to, with its artifacts at hand.

    Raises:
        InvalidSpecError: the data are not the study's, or its artifacts cannot be written or lie elsewhere.
    """
    artifacts = Artifacts(root=artifacts_root(spec.artifacts, storage.url, spec.study), study=spec.study)
    known = _existing(storage, spec.study)
    if known is not None and CheckpointLedger(known, artifacts.root).is_elsewhere(artifacts.root / artifacts.folder):
        raise InvalidSpecError(
            [
                f"artifacts: no checkpoint of study '{spec.study}' lies below {artifacts.root}; give --artifacts where "
                f"they are, or make the folder '{artifacts.folder}' there to start its unfinished trials anew"
            ],
            f"the continuation of study '{spec.study}'",
        )
    try:
        artifacts.root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidSpecError(
            [f"artifacts: cannot make the folder {artifacts.root}: {error.strerror}"], "the specification"
        ) from error
    study = storage.create_study(spec.study, direction=spec.objective_direction, specification=stored_form(spec))
    check_same_data(study, fingerprint)
    study.update_specification(stored_form(spec))
    remember_study(RecentStudy(name=spec.study, storage=storage.url, artifacts=str(artifacts.root)))
    return study


def _existing(storage: Storage, name: str) -> Study | None:
    try:
        return storage.open_study(name)
    except StudyNotFoundError:
        return None


def _artifacts(spec: SearchSpec, study: Study) -> Artifacts:
    return Artifacts(root=artifacts_root(spec.artifacts, study.storage_url, study.name), study=study.name)


def _is_spent(study: Study, spec: SearchSpec) -> bool:
    """Whether a run would find nothing to do: the budget is used up, and the winner is measured."""
    best = study.best_trial()
    is_measured = best is None or test_score(study, best) is not None
    return is_measured and _is_used_up(study, spec)


def _is_used_up(study: Study, spec: SearchSpec) -> bool:
    is_at_rest = all(trial.state.is_ended for trial in study.trials() if trial.state.is_counted)
    return is_at_rest and _counted(study) >= spec.trials


def _counted(study: Study) -> int:
    return sum(trial.state.is_counted for trial in study.trials())
