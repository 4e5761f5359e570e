"""The Python API, and what the command line calls: search, resume, open a study."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from automl.artifacts import Artifacts, artifacts_root
from automl.continuation import FIXED, continued, stored_form
from automl.env import prepare_private_cluster
from automl.errors import InvalidSpecError
from automl.evaluation import measure_on_test_split, test_score
from automl.events import Event
from automl.executors.base import Executor
from automl.interrupt import Interrupt
from automl.lookup import find_study
from automl.objective import best_trials
from automl.recent import remember_storage
from automl.registry import pruner_class, sampler_class
from automl.scheduler import Scheduler
from automl.search_loop import LEASE_S, SearchLoop
from automl.spec import SearchSpec
from search_spaces import catalog
from studies.checkpoints import CheckpointLedger
from studies.errors import StudyNotFoundError
from studies.identity import process_identity
from studies.leases import LeaseKeeper
from studies.report import write_report
from studies.storage import Storage
from studies.study import Study
from studies.trial import Trial

__all__ = ["Observer", "SearchOutcome", "load_study", "report", "resume", "run", "search"]


class Observer:
    """Is told what happens in a search; the base class keeps silent.

    The life of a search: `prepare` for each slow step before it, `begin` once, `notify` for each event, `end` once.
    """

    def prepare(self, step: str) -> None:
        """A step begins that may take seconds, such as `starting Ray`."""

    def begin(self, spec: SearchSpec, study: Study, slots: int) -> None:
        """The study is open and the executor ready."""

    def notify(self, event: Event) -> None:
        """Something has changed."""

    def end(self) -> None:
        """The loop is over, whatever the reason."""


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
        exit_code: 0 done, 3 nothing completed, 130 or 143 interrupted.
    """

    spec: SearchSpec
    study: Study
    reason: str
    best: Trial | None
    test: Mapping[str, float] | None
    report: Path | None
    exit_code: int


def search(*, observer: Observer | None = None, **fields: object) -> SearchOutcome:
    """Search for the best configuration; go on with the study where it exists.

    Args:
        observer: is told what happens.
        fields: the fields of a `SearchSpec`; `space` is the only one that must be given.

    Raises:
        InvalidSpecError: with every mistake in `fields`.
        AutomlError: the search cannot be run, or failed.

    Example:
        >>> import automl
        >>> outcome = automl.search(space="nas_small", trials=20)
        >>> outcome.best.value
    """
    spec = SearchSpec.from_mapping(fields, "the specification")
    return run(spec, fields, observer or Observer())


def resume(study: str, *, observer: Observer | None = None, **changes: object) -> SearchOutcome:
    """Go on with a study by its name, on this or another machine.

    Args:
        study: name of the study.
        observer: is told what happens.
        changes: fields of the specification to change, such as a larger `trials`.

    Raises:
        StudyNotFoundError: there is no such study in the storage, nor in a lately used one.
        InvalidSpecError: a change is not possible.
    """
    given = changes.get("storage")
    found = find_study(study, None if given is None else str(given))
    stored = found.study.specification
    if "space" not in stored:
        raise InvalidSpecError(
            [f"study '{study}' was not made by automl; go on with it by `automl search --space ... --study {study}`"],
            "the study",
        )
    explicit = {**changes, "study": study, "storage": found.storage}
    spec = SearchSpec.from_mapping(
        {**{name: stored[name] for name in FIXED if name in stored}, **explicit}, "the specification"
    )
    return run(spec, explicit, observer or Observer())


def load_study(name: str, storage: str | None = None) -> Study:
    """Open a study to look at it.

    Raises:
        StudyNotFoundError: there is none of that name.
    """
    return find_study(name, storage).study


def run(spec: SearchSpec, explicit: Mapping[str, object], observer: Observer) -> SearchOutcome:
    """Run a valid specification; `explicit` names the fields that were given rather than defaulted."""
    storage = Storage(spec.storage)
    spec = _with_stored(storage, spec, explicit)
    observer.prepare(f"reading the data '{spec.data.source}'")
    data = spec.trainer.load(spec.data)  # bad data end here, before anything is created
    study = storage.create_study(spec.study, direction=spec.objective_direction, specification=stored_form(spec))
    study.update_specification(stored_form(spec))
    remember_storage(storage.url)
    artifacts = Artifacts(root=artifacts_root(spec.artifacts, storage.url), study=spec.study)
    with Interrupt() as interrupt:
        reason = _work(spec, study, artifacts, data, interrupt, observer)
    best = _best(study, spec)
    is_interrupted = interrupt.signal is not None
    return SearchOutcome(
        spec=spec,
        study=study,
        reason=reason,
        best=best,
        test=None if best is None else test_score(study, best),
        report=None if is_interrupted else report(study, artifacts.report),
        exit_code=interrupt.exit_code if is_interrupted else (0 if best is not None else 3),
    )


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


def report(study: Study, path: Path) -> Path:
    """Write the study's report page, with the best network drawn where its space can draw."""
    space_name = study.specification.get("space")
    space = catalog.load(space_name) if space_name in catalog.available() else None
    return write_report(study, path, space=None if space is None else space.SPACE, graph=getattr(space, "graph", None))


def _work(
    spec: SearchSpec,
    study: Study,
    artifacts: Artifacts,
    data: Any,
    interrupt: Interrupt,
    observer: Observer,
) -> str:
    """Train until there is a reason to end, then measure the winner; nothing is started when nothing is left."""
    best = _best(study, spec)
    if _is_spent(study, spec) and (best is None or test_score(study, best) is not None):
        return f"nothing left to do, {_counted(study)} of {spec.trials} trials have ended"
    observer.prepare("starting the workers" if spec.executor == "inline" else "starting the workers on Ray")
    with make_executor(spec, data) as executor:
        interrupt.take_over()
        reason = _search(spec, study, artifacts, executor, interrupt, observer)
        best = _best(study, spec)
        if best is not None and interrupt.signal is None:
            measure_on_test_split(spec, study, artifacts, executor, best, interrupt)
    return reason


def _search(
    spec: SearchSpec,
    study: Study,
    artifacts: Artifacts,
    executor: Executor,
    interrupt: Interrupt,
    observer: Observer,
) -> str:
    direction = spec.objective_direction
    scheduler = Scheduler(
        space=spec.search_space,
        sampler=sampler_class(spec.sampler)(direction),
        pruner=pruner_class(spec.pruner)(direction, spec.epochs),
        budget=spec.trials,
        seed=spec.seed,
    )
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


def _with_stored(storage: Storage, spec: SearchSpec, explicit: Mapping[str, object]) -> SearchSpec:
    """The specification with what an existing study has stored; unchanged for a new study."""
    try:
        stored = storage.open_study(spec.study).specification
    except StudyNotFoundError:
        return spec
    return continued(stored, spec, explicit)


def _best(study: Study, spec: SearchSpec) -> Trial | None:
    return next(iter(best_trials(study.trials(), spec.objective_direction)), None)


def _is_spent(study: Study, spec: SearchSpec) -> bool:
    is_at_rest = all(trial.state.is_ended for trial in study.trials() if trial.state.is_counted)
    return is_at_rest and _counted(study) >= spec.trials


def _counted(study: Study) -> int:
    return sum(trial.state.is_counted for trial in study.trials())
