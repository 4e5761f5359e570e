"""All that looks on while one rank trains: clocks, the log, TensorBoard and the profiler, as far as they are wanted."""

from collections.abc import Iterator, Mapping

from torch import nn

from trainers.advice import advice_before
from trainers.config import TrainTask
from trainers.distributed import Ranks
from trainers.epoch_log import EpochLog
from trainers.estimates import check_fits, estimate_epoch_s, estimate_memory, estimate_network, expected_peak
from trainers.monitoring import Monitor
from trainers.network_memory import check_network_fits
from trainers.optimizers.sharded import is_sharded
from trainers.parallel.batch_norm import synchronises_nothing
from trainers.problem import Batch, Problem
from trainers.profiling import TABLE, StepProfile
from trainers.reporting import JsonValue
from trainers.sharing_choice import holds_a_part
from trainers.tensorboard import OF_PARTS, OF_STAGES, Board

__all__ = ["Watch"]


class Watch:
    """Looks on, and changes nothing of the training. Rank 0 tells of it; the others only measure.

    The life of a watch: it is made before anything is put on the device; `check_network` while a large network is
    built, and `check_memory` with every one; `open` when it is known which epoch comes next; then for each epoch
    `begin_epoch`, the steps, `measurements` and on rank 0 `tell`; `close` at the end, also after an error.

    Args:
        task: what is trained.
        ranks: this process's place.
    """

    def __init__(self, task: TrainTask, ranks: Ranks) -> None:
        self._task, self._ranks = task, ranks
        self._monitor = Monitor(ranks.device, announces=ranks.is_first, ranks_here=ranks.on_this_machine)
        self._log = EpochLog(task.training.epochs, self._monitor.load)
        self._board: Board | None = None
        self._profile: StepProfile | None = None
        self._measured: Mapping[str, float] = {}
        self._items = (1, 0)
        self._facts: dict[str, JsonValue] = {}

    def check_network(self, network: nn.Module) -> None:
        """Refuse a network that cannot be trained on this device whatever the batch, before it has memory.

        Args:
            network: the whole of it, on any device.

        Raises:
            NetworkMemoryError: it cannot fit.
        """
        training, ranks = self._task.training, self._ranks
        alone, load = estimate_network(network, training), self._monitor.load
        check_network_fits(alone, load, training, ranks.world_size, on_this_machine=ranks.on_this_machine)

    def check_memory(self, network: nn.Module, example: Batch, precision: str) -> None:
        """Refuse a network that cannot be trained on this device; one that no estimate knows is let through.

        Args:
            network: on the device.
            example: one item.
            precision: the precision really used.

        Raises:
            DeviceMemoryError: it cannot fit.
        """
        training, ranks = self._task.training, self._ranks.world_size
        if holds_a_part(training, ranks):
            return
        estimate = estimate_memory(network, example, training, ranks=ranks, is_half=precision in ("bf16", "fp16"))
        if estimate is None:
            return
        check_fits(estimate, self._monitor.load, training.micro_batch(ranks))
        self._facts["estimated_memory_mib"] = expected_peak(estimate, self._monitor.load) / 2**20

    def open(self, first_epoch: int, problem: Problem, network: nn.Module, steps: int, precision: str) -> None:
        """Prepare what is written of the training; rank 0 writes.

        Args:
            first_epoch: the epoch that comes next.
            problem: what is learned.
            network: what is trained.
            steps: optimizer steps of an epoch.
            precision: the precision really used.

        Raises:
            UserCodeError: the package `tensorboard` is wanted and missing.
            OSError: the folder of its files cannot be written.
        """
        self._log.overflows_are_usual = precision == "fp16"
        self._log.reads_items = problem.reads_items
        task, measured = self._task, problem.facts().get("validation_items")
        self._items = (problem.training_items, measured if isinstance(measured, int) else 0)
        if self._ranks.is_first:
            idle = synchronises_nothing(network, task.training, self._ranks.world_size)
            sizes = task.training.batch_size, problem.training_items
            self._log.warn(advice_before(*sizes, synchronises_nothing=idle))
        if task.profile and self._ranks.is_first:
            folder = f"{task.artifacts_root}/{task.checkpoint_dir}"
            self._profile = StepProfile(folder, self._ranks.device, steps)
            self._facts["profile"] = f"{task.checkpoint_dir}/{TABLE}"
        if task.tensorboard is not None and self._ranks.is_first:
            self._facts["tensorboard"] = task.tensorboard
            self._board = Board(f"{task.artifacts_root}/{task.tensorboard}", first_epoch, problem)
            if any(is_sharded(weight) for weight in network.parameters()):
                self._board.note(OF_PARTS)  # to draw weights that are cut, all ranks would have to take part
            else:
                self._board.graph(network)
            if self._ranks.world_size > 1 and task.training.parallel == "pipeline":
                self._board.note(OF_STAGES)

    def begin_epoch(self, steps: int) -> None:
        """Begin an epoch of so many optimizer steps."""
        self._monitor.begin(steps)
        self._log.steps = steps
        if self._profile is not None:
            self._profile.begin()

    def batches(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the batches of the epoch, and measure how long they are waited for."""
        timed = self._monitor.timed(batches)
        board = self._board
        return _shown(timed, board) if board is not None and board.wants_images else timed

    def gradients(self, network: nn.Module) -> None:
        """See the gradients of the last step of an epoch."""
        weights = list(network.named_parameters())
        self._log.without_gradient = tuple(
            name for name, weight in weights if weight.requires_grad and weight.grad is None
        )
        if self._board is not None:
            self._board.gradients(weights)

    def step_done(self) -> None:
        """Take notice of a step."""
        self._monitor.step_done()
        if self._profile is not None:
            self._profile.step_done()

    def end_epoch(self, steps_made: int) -> None:
        """Measure what the training part of the epoch has cost, in which so many steps were not skipped."""
        self._log.steps_made = steps_made
        self._measured = self._monitor.end()

    def measurements(self) -> Mapping[str, float]:
        """Return what was measured of the last epoch."""
        return self._measured

    def tell(self, epoch: int, metrics: Mapping[str, float], network: nn.Module) -> str:
        """Log and draw an epoch that was trained and measured, and return its line; rank 0 only."""
        if self._board is not None:
            self._board.epoch(epoch, metrics, network.named_parameters())
        return self._log.epoch(epoch, metrics)

    def facts(self) -> Mapping[str, JsonValue]:
        """Return what is worth keeping: memory and time as they were and as they were expected, and warnings."""
        facts = {
            "device_memory_mib": self._monitor.load.peak_memory_bytes() / 2**20,
            **self._facts,
            **self._log.facts(),
        }
        training_s = self._monitor.estimated_training_s
        if training_s is not None:
            facts["estimated_epoch_s"] = estimate_epoch_s(training_s, *self._items)
        return facts

    def close(self) -> None:
        """End what is written."""
        if self._profile is not None:
            self._profile.close()
        if self._board is not None:
            self._board.close()


def _shown(batches: Iterator[Batch], board: Board) -> Iterator[Batch]:
    """Yield the batches, and show the first one."""
    for batch in batches:
        if board.wants_images:
            board.batch(batch)
        yield batch
