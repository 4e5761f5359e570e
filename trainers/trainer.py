"""The plug point of training: a trainer turns one configuration into reports, checkpoints and a result."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from search_spaces.configuration import JsonScalar
from trainers.config import Direction, EvaluateTask, TrainConfig, TrainTask
from trainers.data.spec import DataSpec
from trainers.reporting import Reporter, TrialResult

if TYPE_CHECKING:
    from trainers.distributed import Ranks
    from trainers.drafts import Drafts

__all__ = ["Trainer"]


class Trainer(ABC):
    """Trains one configuration at a time; the same object serves many trials, one after the other.

    The life of a trial: `load` is called once per process and data set; then every rank calls `fit` with the
    same task, its own `ranks` and its copy of the data. A trainer knows neither Optuna nor Ray.
    """

    hyperparameters: ClassVar[frozenset[str]]
    """Names of the training parameters that a search space may set for this trainer.

    One that lists `accumulate` cuts its batches into so many micro-batches, and raises DeviceMemoryError, or lets
    torch's own error out, when one of them does not fit: then it is called again with smaller ones.
    """
    metrics: ClassVar[Mapping[str, Direction]]
    """What is measured on the validation split, and which way is better; the first is the usual objective."""

    has_networks: ClassVar[bool] = False
    """Whether a configuration builds a network that `drafts` can look at."""

    is_open: ClassVar[bool] = False
    """Whether parameters of any name are allowed, because the configuration goes to a person's own code as it is."""

    data_words: ClassVar[str] = "such data"
    """What the data are, for messages."""
    data_come_from: ClassVar[str] = "data"
    """What is at fault when data cannot be read, for messages."""

    data_options: ClassVar[Collection[str] | None] = None
    """Which options of the data have a meaning, of those that only some kinds of data have; None: any may have one."""

    @abstractmethod
    def check(self, data: DataSpec) -> None:
        """Refuse data that cannot be there, without reading them.

        Raises:
            BadDataError: the source does not exist or is of no known kind; the message names what is allowed.
        """

    def measured(self, data: DataSpec) -> Mapping[str, Direction]:
        """Return those of `metrics` that make sense for some data, without reading more of them than must be.

        Nothing at all says that it is not known before the training: then any name is allowed.
        """
        return self.metrics

    def mistakes(self, training: TrainConfig, data: DataSpec) -> list[str]:
        """Return what of a training's settings cannot be done with some data, one sentence each; empty: nothing.

        It is asked before anything is trained, and loads no torch unless a person's own code does.

        Args:
            training: the settings, each allowed by itself.
            data: accepted by `check`; no more of them is read than must be.

        Raises:
            BadDataError: the data cannot be read.
        """
        return []

    def check_names(self, names: Collection[str]) -> None:
        """Refuse configurations of these parameters, the constants among them, where one is missing.

        Raises:
            MistakeElsewhereError: a person's command has a place for a parameter that does not exist.
        """
        return None

    def mistakes_once_loaded(
        self,
        training: TrainConfig,
        space: str,
        configurations: Sequence[Mapping[str, JsonScalar]],
        data: Any,
        ranks: int,
    ) -> list[str]:
        """Return what of a training's settings cannot be done, as far as only loaded data and networks can tell.

        It is asked before anything is trained, and costs next to nothing unless such a setting is used.

        Args:
            training: the settings, without what `mistakes` refuses.
            space: search space that builds the networks.
            configurations: some of those that would be trained; where only some can be, that is no mistake.
            data: what `load` returned.
            ranks: how many train together.

        Returns:
            One sentence for each mistake; empty: there is none.
        """
        return []

    def can_evaluate(self) -> bool:
        """Return whether `evaluate` measures anything; otherwise a search ends without a test score."""
        return True

    def code_digest(self) -> str | None:
        """Return what identifies the text of a person's own files; None for a trainer that comes with a package.

        A study keeps it, and says when it has changed.
        """
        return None

    def check_objective(self, metric: str, data: Any) -> None:
        """Refuse an objective that is not defined on the splits of loaded data, before anything is trained.

        Args:
            metric: one of `measured`.
            data: what `load` returned.

        Raises:
            BadDataError: the metric has no value there; the message says why.
        """
        return None

    @abstractmethod
    def load(self, data: DataSpec) -> Any:
        """Read the data once, as picklable arrays that ranks and trials can share.

        Raises:
            BadDataError: the data cannot be read or trained on.
        """

    @abstractmethod
    def fingerprint(self, data: Any) -> str:
        """Identify what `load` returned: equal only for the same items in the same splits, wherever they lie.

        A study keeps it, and refuses to go on with other data: its trials could not be compared.
        """

    @abstractmethod
    def fit(self, task: TrainTask, data: Any, ranks: "Ranks", reporter: Reporter) -> TrialResult:
        """Train until all epochs are done or the reporter's decision ends it.

        Args:
            task: the same on every rank.
            data: what `load` returned.
            ranks: this process's place among the ranks of the trial.
            reporter: asked after every epoch on rank 0 only; its decision is broadcast, so that all ranks
                leave in the same step.

        Raises:
            TrialError: the training cannot go on; the error's cause is stored on the trial.
        """

    @abstractmethod
    def evaluate(self, task: EvaluateTask, data: Any, ranks: "Ranks") -> Mapping[str, float]:
        """Measure the weights of a checkpoint on one split: name -> value, each item counted once."""

    def drafts(self, space: str, data: Any) -> "Drafts":
        """Return what builds and costs the networks of configurations before any of them is trained.

        Args:
            space: name of the search space that builds them.
            data: what `load` returned.

        Raises:
            NotImplementedError: this trainer has no networks (`has_networks`).
        """
        raise NotImplementedError(f"{type(self).__name__} has no networks")
