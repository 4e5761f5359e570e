"""A study that a Tune program has joined: opened, checked and kept alive until the program leaves it."""

import atexit
import logging
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self
from weakref import WeakValueDictionary

from automl.artifacts import artifacts_root
from automl.asking import Asker
from automl.continuation import keep_space
from automl.env import default_storage
from automl.errors import InvalidSpecError
from automl.integrations.ray_tune.asking import TuneAsking, log_untrained
from automl.integrations.ray_tune.held import HeldTrials
from automl.integrations.ray_tune.program_end import ProgramEnd
from automl.integrations.ray_tune.settings import Given, Mode, Settings, Space, direction_of, settings_of
from automl.integrations.ray_tune.telling import TuneTelling
from automl.recent import RecentStudy, remember_study
from automl.registry import pruner_class, sampler_class
from automl.scheduler import Scheduler
from automl.search_loop import LEASE_S
from studies.errors import StudyNotFoundError
from studies.identity import process_identity
from studies.leases import LeaseKeeper
from studies.sharing import sharing_warnings
from studies.storage import Storage
from studies.study import Study
from studies.trial import Trial

__all__ = ["TuneStudy"]

_log = logging.getLogger(__name__)


class TuneStudy:
    """Joins a Tune program to a study; give it to `StudySearcher` and `StudyScheduler`, which work as a pair.

    Use it in a `with` statement around `Tuner.fit`: trials that Tune has cut short (Ctrl-C, `time_budget_s`) are given
    back at its end, so that anyone may go on with them. Without one that happens when the process ends. `Tuner.restore`
    finds the joined study of its process, or else joins it again by itself.

    What is left out is taken from the study where it exists. A password in `storage` is not written into Tune's files.

    Args:
        study: its name; one that does not exist is made.
        storage: URL of its database. Default: AUTOML_STORAGE, or sqlite:///automl-runs/studies.db.
        space: what is searched: a `SearchSpace`, the name of one, or a dict of parameters of ours or of Tune's domains,
            such as the `param_space` of an existing script without its constants.
        metric: name of the objective in `tune.report`.
        mode: `min` or `max`.
        epochs: epochs of a full training; a trial that reports this one is complete, as with `max_t` of Ray's ASHA.
        sampler: how configurations are proposed. Default: tpe.
        pruner: which trials are stopped early. Default: asha.
        seed: seed of the study's proposals. Default: 0.
        trials: trials of the study in all, over every program. Default: as many as `num_samples` of each program.
        timeout: seconds that the study shall be searched in all.
        target_value: objective at which the study has what it wants.
        max_retries: how often a trial is started again after its process was lost. Default: 2.
        max_failures: failed trials in a row that end the search. Default: 5.
        time_attr: name of the number of finished epochs in the reports, a whole number from 1.

    Attributes:
        settings: all of this, completed.
        held: which of Tune's names belongs to which trial.
        asking: what is trained next.
        telling: what becomes of it.

    Raises:
        InvalidSpecError: with every mistake, also where the study was made with other settings.
        StorageError: the database cannot be used.
    """

    def __init__(
        self,
        study: str,
        *,
        storage: str | None = None,
        space: Space | None = None,
        metric: str | None = None,
        mode: Mode | None = None,
        epochs: int | None = None,
        sampler: str | None = None,
        pruner: str | None = None,
        seed: int | None = None,
        trials: int | None = None,
        timeout: float | None = None,
        target_value: float | None = None,
        max_retries: int | None = None,
        max_failures: int | None = None,
        time_attr: str = "training_iteration",
    ) -> None:
        """Open or make the study."""
        given = Given(
            space=space, metric=metric, mode=mode, epochs=epochs, sampler=sampler, pruner=pruner,
            seed=seed, trials=trials, timeout=timeout, target_value=target_value, max_retries=max_retries,
            max_failures=max_failures,
        )  # fmt: skip
        self._join(study, storage or default_storage(), given, time_attr)

    def _join(self, name: str, url: str, given: Given, time_attr: str) -> None:
        self.time_attr = time_attr
        self.has_scheduler = False
        self._is_closed = False
        self._given = given
        with ExitStack() as opened:
            storage = opened.enter_context(Storage(url))
            self.settings, self._study = _opened(storage, name, given)
            keeper = opened.enter_context(LeaseKeeper(self._study, ttl_s=LEASE_S))
            self._bring_together(keeper)
            opened.callback(self.telling.give_all_back)
            self._resources = opened.pop_all()
        self._url = storage.url
        atexit.register(self._resources.close)
        _JOINED[self._url, name] = self

    def _bring_together(self, keeper: LeaseKeeper) -> None:
        study, settings = self._study, self.settings
        scheduler = Scheduler(
            space=settings.space,
            sampler=sampler_class(settings.sampler)(settings.direction),
            pruner=pruner_class(settings.pruner)(settings.direction, settings.epochs),
            seed=settings.seed,
            earlier=keep_space(study, settings.space).earlier,
        )
        asker = Asker(
            study,
            settings.space,
            keeper,
            owner=process_identity(),
            lease_s=LEASE_S,
            max_retries=settings.max_retries,
            observe=log_untrained,
        )
        end = ProgramEnd(study, began_at=study.standing.now, max_failures=settings.max_failures)
        self.held = HeldTrials(keeper)
        self.asking = TuneAsking(study, scheduler, asker, self.held, end)
        self.telling = TuneTelling(
            study, scheduler, self.held, end, metric=settings.metric, max_retries=settings.max_retries
        )

    @property
    def name(self) -> str:
        """The study's name."""
        return self._study.name

    @property
    def token(self) -> str | None:
        """The word that tells the study from another one of its name."""
        return self._study.token

    def all_trials(self) -> tuple[Trial, ...]:
        """Every trial of the study, those of other programs too, in order of the numbers."""
        return self._study.trials()

    def best_trial(self) -> Trial | None:
        """The best complete trial; None when there is none."""
        return self._study.best_trial()

    def begin_run(self, metric: str | None, mode: str | None) -> None:
        """Take up a run of Tune whose scheduler is ours; `TuneConfig` may have an objective too.

        Raises:
            InvalidSpecError: the metric or the mode is another one, or the study was closed.
        """
        problems = []
        if self._is_closed:
            problems.append("it was left at the end of its `with` statement; call Tuner.fit inside, or join it anew")
        if metric is not None and metric != self.settings.metric:
            problems.append(f"metric: TuneConfig has {metric!r}, but the study {self.settings.metric!r}; leave it out")
        if mode is not None and direction_of(mode) != self.settings.direction:
            problems.append(f"mode: TuneConfig has {mode!r}, but the study {self.settings.direction!r}; leave it out")
        if problems:
            raise InvalidSpecError(problems, f"the use of study '{self.name}' by Ray Tune")
        self.has_scheduler = True

    def close(self) -> None:
        """Give back what is still held and leave the study; may be called twice."""
        self._is_closed = True
        atexit.unregister(self._resources.close)
        self._resources.close()
        if _JOINED.get((self._url, self.name)) is self:
            del _JOINED[self._url, self.name]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Tune writes searchers and schedulers into its files: what is kept of a study is how to join it."""
        return _rejoined, (self.name, self._url, self._given, self.time_attr)


_JOINED: "WeakValueDictionary[tuple[str, str], TuneStudy]" = WeakValueDictionary()
"""The joined studies of this process by database and name, so that `Tuner.restore` finds the one of its script."""


def _rejoined(name: str, url: str, given: Given, time_attr: str) -> TuneStudy:
    joined = _JOINED.get((url, name))
    if joined is None:
        joined = TuneStudy.__new__(TuneStudy)
        joined._join(name, url, given, time_attr)
    return joined


def _opened(storage: Storage, name: str, given: Given) -> tuple[Settings, Study]:
    try:
        study = storage.open_study(name)
    except StudyNotFoundError:
        settings = settings_of(name, None, given)
        study = storage.create_study(
            name, direction=settings.direction, specification=settings.specification, limits=settings.limits
        )
    # Another process may have made it meanwhile, with other settings.
    settings = settings_of(name, study, given)
    study.set_limits(settings.limits, settings.changed_limits)
    study.update_specification(settings.specification)
    for warning in sharing_warnings(study, storage.file):
        _log.warning("%s", warning)
    remember_study(RecentStudy(name=name, storage=storage.url, artifacts=artifacts_root(None, storage.url, name)))
    return settings, study
