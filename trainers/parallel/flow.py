"""How micro-batches flow through the stages of a pipeline: torch's schedules, one for each shape that a training meets.

Each rank calls the same methods in the same order; what ranks send each other is set up with a new schedule.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

from trainers.distributed import Ranks
from trainers.parallel.stages import Layer, passages
from trainers.precision import MixedPrecision
from trainers.problem import Batch

__all__ = ["ChunkLoss", "Flow"]

KEPT_SCHEDULES = 16
"""Batches of so many different shapes can follow each other without new buffers."""

ChunkLoss: TypeAlias = Callable[[torch.Tensor, Batch], torch.Tensor]
"""(answers, micro-batch) -> what goes backward of it."""
_Schedule: TypeAlias = ScheduleGPipe | Schedule1F1B


class Flow:
    """Sends runs of micro-batches of equal size through all stages.

    Args:
        stage: of this rank.
        layers: of the whole network, without memory for their weights.
        slices: which layers each rank has.
        ranks: two at least.
        precision: in which forward passes compute.
    """

    def __init__(
        self,
        stage: nn.Module,
        layers: Sequence[Layer],
        slices: Sequence[slice],
        ranks: Ranks,
        precision: MixedPrecision,
    ) -> None:
        self._layers, self._slices, self._ranks, self._precision = layers, slices, ranks, precision
        self._computing = _Computing(stage, precision, answers=self._is_last)
        self._schedules: OrderedDict[object, _Schedule] = OrderedDict()
        self._loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None

    def close(self) -> None:
        """Drop the buffers."""
        self._schedules.clear()
        self._loss = None

    def train(self, run: Batch, count: int, loss_of: ChunkLoss) -> None:
        """Add the gradients of a run.

        Args:
            run: all its items; only the first rank needs the inputs, and only the last one the targets.
            count: micro-batches that it is cut into.
            loss_of: is called on the last rank, for each of them.
        """
        chunks = _chunks(run, count)
        self._loss = lambda answers, number: loss_of(answers, chunks[int(number)])
        schedule = self._schedule(chunks[0], count, trains=True)
        target = torch.arange(count) if self._is_last else None  # the numbers of the micro-batches, on the CPU
        with _own_errors():
            schedule.step(*self._inputs(run), target=target, return_outputs=False)

    def answers(self, run: Batch, count: int) -> torch.Tensor | None:
        """Return the answers to a run on the last rank; None on the others."""
        schedule = self._schedule(_chunks(run, count)[0], count, trains=False)
        with _own_errors():
            answers: torch.Tensor | None = schedule.step(*self._inputs(run))
        return answers

    @property
    def _is_last(self) -> bool:
        return self._ranks.rank == self._ranks.world_size - 1

    def _inputs(self, run: Batch) -> tuple[torch.Tensor, ...]:
        """Only the first stage is given inputs; the others wait for the answers of the one before."""
        return run.inputs if self._ranks.is_first else ()

    def _schedule(self, chunk: Batch, count: int, trains: bool) -> _Schedule:
        """Return the schedule for micro-batches of one shape; all ranks have the same ones, as they meet the same."""
        key = (tuple((tuple(part.shape), part.dtype) for part in chunk.inputs), count, trains)
        if key in self._schedules:
            self._schedules.move_to_end(key)
            return self._schedules[key]
        if len(self._schedules) == KEPT_SCHEDULES:
            self._schedules.popitem(last=False)
        self._schedules[key] = self._new_schedule(chunk, count, trains)
        return self._schedules[key]

    def _new_schedule(self, chunk: Batch, count: int, trains: bool) -> _Schedule:
        rank, world_size, device = self._ranks.rank, self._ranks.world_size, self._ranks.device
        passed = passages(self._layers, chunk.inputs, device, self._precision.autocast())
        ends = [passed[stage.stop - 1].answer for stage in self._slices]
        stage = PipelineStage(
            self._computing,
            rank,
            world_size,
            device,
            input_args=chunk.inputs if rank == 0 else self._wire(ends[rank - 1], rank - 1, trains),
            output_args=self._wire(ends[rank], rank, trains),
            group=self._ranks.main,
        )
        loss = (lambda answers, number: self._loss(answers, number)) if trains else None  # type: ignore[misc]  # set by then
        # With fewer micro-batches than ranks, one forward and one backward pass in turn cannot begin.
        kind = Schedule1F1B if count >= world_size and trains else ScheduleGPipe
        return kind(stage, count, loss_fn=loss, scale_grads=False)

    def _wire(self, answer: torch.Tensor | None, stage: int, trains: bool) -> torch.Tensor:
        """Say what a stage hands over: its shape and type, and whether a gradient comes back."""
        assert answer is not None
        layers = self._layers[: self._slices[stage].stop]
        moves = any(weight.requires_grad for layer in layers for weight in layer.module.parameters())
        return answer.detach().requires_grad_(trains and moves and answer.is_floating_point())


class _Computing(nn.Module):
    """A stage as torch's schedule calls it: in the training's precision, with answers that can be sent as they lie."""

    def __init__(self, stage: nn.Module, precision: MixedPrecision, answers: bool) -> None:
        super().__init__()
        self.stage, self._precision, self._answers = stage, precision, answers

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        with self._precision.autocast():
            answer: torch.Tensor = self.stage(*inputs)
        return answer if self._answers else answer.contiguous()


def _chunks(run: Batch, count: int) -> list[Batch]:
    """Cut a run as torch's schedule cuts its inputs."""
    inputs = zip(*(part.tensor_split(count) for part in run.inputs), strict=True)
    return [Batch(own, targets) for own, targets in zip(inputs, run.targets.tensor_split(count), strict=True)]


@contextmanager
def _own_errors() -> Iterator[None]:
    """Let an error of the network out as it was raised, without the words that torch's schedule wraps it in."""
    try:
        yield
    except RuntimeError as error:
        if error.__cause__ is None or "failed to run" not in str(error).lower():
            raise
        raise error.__cause__ from None
