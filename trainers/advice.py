"""What looks wrong in a training, with advice: a pure judgement of what its epochs have measured.

Each sign has a threshold that trainings in good order keep away from: a warning that is often wrong is not read.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Advice", "EpochFacts", "Sign", "advice_after", "advice_before"]

Sign: TypeAlias = Literal[
    "batch",
    "batch_norm",
    "memory",
    "data",
    "skipped",
    "loss",
    "missing_gradient",
    "zero_gradient",
    "exploding_gradient",
    "validation",
]

FULL_MEMORY = 0.9
"""Share of the memory; the rest is soon needed by a larger picture of the same kind, or by fragments."""
IDLE_FOR_DATA = 0.2
"""Share of the time in which steps wait for batches; below, faster data would save less than a fifth."""
BUSY_DEVICE_PERCENT = 80.0
"""A device that is so busy does not wait for data, whatever the clock of the host says."""
WAITING_EPOCHS = 2
"""Epochs that must wait one after the other: the first one of a process also starts what reads the data."""
LEAST_MADE = 0.5
"""Share of the steps of an epoch. Usually fp16 skips a few steps at the beginning, and one in some thousand later."""
PATIENT_EPOCHS = 5
"""Epochs that a loss is followed before it is judged; warm-up and chance take the first few."""
LEAST_FALL = 0.01
"""Share of the first epoch's loss; whatever learns falls by more in `PATIENT_EPOCHS` epochs."""
GROWN_LOSS = 0.5
"""Share of the first epoch's loss by which one may lie above the lowest; chance moves a mean over all items less."""
UNUSED_EPOCHS = 2
"""Epochs in whose last steps a weight must go without a gradient: parts that depend on the items may miss one."""
EXPLODING = 1e3
"""Times the median norm of the gradients before. Usual gradients differ by less than 100 times within a training."""
KNOWN_NORMS = 3
"""Epochs whose norms make a median."""
RISE_OF_VALIDATION = 1.2
"""Times its lowest value; ordinary ups and downs of a validation loss are smaller."""
GAP_OF_LOSSES = 0.2
"""Share of the first epoch's training loss by which validation must lie above training. Without it the tiny losses of
a task that is solved would count: 0.01 and 0.05 are far apart only by their ratio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFacts:
    """What an epoch has measured.

    Attributes:
        epoch: counted from 1.
        train_loss: mean loss of the training items.
        validation_loss: of the validation items; None: not measured.
        gradient_norm: of the last step; None: not measured.
        overflows_are_usual: whether gradients may overflow without harm, as in fp16, where such steps are skipped.
        steps: optimizer steps of the epoch.
        steps_made: those that were made; the gradients of the others overflowed.
        without_gradient: names of weights that got no gradient in the last step.
        reads_items: whether items are read one by one, by `loader_workers`; otherwise they lie in memory.
        data_wait_share: share of the time in which steps waited for their batch.
        utilisation_percent: how busy the device was; None: unknown.
        memory_bytes: memory of the device that is taken.
        memory_limit_bytes: all of it.
    """

    epoch: int
    train_loss: float
    validation_loss: float | None = None
    gradient_norm: float | None = None
    overflows_are_usual: bool = False
    steps: int = 1
    steps_made: int = 1
    without_gradient: tuple[str, ...] = ()
    reads_items: bool = False
    data_wait_share: float = 0.0
    utilisation_percent: float | None = None
    memory_bytes: int = 0
    memory_limit_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A warning: which sign was seen, and in words what and what helps."""

    sign: Sign
    text: str


def advice_before(batch_size: int, items: int, *, synchronises_nothing: bool = False) -> Sequence[Advice]:
    """Judge a training that has not begun.

    Args:
        batch_size: items per optimizer step, as the configuration has it.
        items: that an epoch trains.
        synchronises_nothing: whether batch normalisation is to be synchronised, and the network has none.
    """
    judgements: Mapping[Sign, str | None] = {
        "batch": _large_batch(batch_size, items),
        "batch_norm": _WITHOUT_BATCH_NORM if synchronises_nothing else None,
    }
    return [Advice(sign=sign, text=text) for sign, text in judgements.items() if text is not None]


def advice_after(history: Sequence[EpochFacts]) -> Sequence[Advice]:
    """Judge the last epoch of a history; a sign that lasts is found after each epoch anew.

    Args:
        history: the epochs that this process has trained, in order; at least one.
    """
    judgements: Mapping[Sign, str | None] = {
        "memory": _full_memory(history[-1]),
        "data": _idle_device(history[-WAITING_EPOCHS:]),
        "skipped": _skipped_steps(history[-1]),
        "loss": _stuck_loss(history),
        "missing_gradient": _missing_gradient(history[-UNUSED_EPOCHS:]),
        "zero_gradient": _zero_gradient(history[-1]),
        "exploding_gradient": _exploding_gradient(history),
        "validation": _growing_gap(history),
    }
    return [Advice(sign=sign, text=text) for sign, text in judgements.items() if text is not None]


_WITHOUT_BATCH_NORM = (
    "batch_norm=synchronised has no effect: the network has no layer of batch normalisation; leave it at local"
)


def _large_batch(batch_size: int, items: int) -> str | None:
    if batch_size <= items:
        return None
    return (
        f"batch_size={batch_size} is larger than the {items} training items: an epoch is one step of {items} items; "
        "a smaller batch_size makes more steps"
    )


def _full_memory(last: EpochFacts) -> str | None:
    if last.memory_bytes <= FULL_MEMORY * last.memory_limit_bytes:
        return None
    share = 100.0 * last.memory_bytes / last.memory_limit_bytes
    return (
        f"memory is nearly full: {_gib(last.memory_bytes)} of {_gib(last.memory_limit_bytes)} GiB ({share:.0f} %) "
        f"after epoch {last.epoch}; more accumulate or a smaller batch_size needs less"
    )


def _idle_device(recent: Sequence[EpochFacts]) -> str | None:
    """Whether steps waited in each of the recent epochs, and the device did not work meanwhile."""
    if len(recent) < WAITING_EPOCHS or not all(map(_waits_for_data, recent)):
        return None
    share = 100.0 * recent[-1].data_wait_share
    advice = (
        "more loader_workers, data that lie in memory, or cheaper changes of the items help"
        if recent[-1].reads_items
        else "fewer or cheaper changes of the items help, or a larger batch_size"
    )
    return f"training waits for data {share:.0f} % of the time (epoch {recent[-1].epoch}); {advice}"


def _waits_for_data(facts: EpochFacts) -> bool:
    is_busy = facts.utilisation_percent is not None and facts.utilisation_percent > BUSY_DEVICE_PERCENT
    return facts.data_wait_share > IDLE_FOR_DATA and not is_busy


def _skipped_steps(last: EpochFacts) -> str | None:
    if last.steps_made >= LEAST_MADE * last.steps:
        return None
    return (
        f"gradients overflow: {last.steps - last.steps_made} of {last.steps} steps of epoch {last.epoch} were skipped; "
        "precision bf16 or fp32, or a smaller learning_rate"
    )


def _stuck_loss(history: Sequence[EpochFacts]) -> str | None:
    """Whether the loss grows, or is no better than in epoch 1, which nobody knows here after a resumption."""
    first, last, recent = history[0], history[-1], history[-PATIENT_EPOCHS:]
    best = min(history, key=lambda facts: facts.train_loss)
    if last.train_loss - best.train_loss > GROWN_LOSS * abs(first.train_loss):
        return (
            f"the loss grows: {last.train_loss:.4g} in epoch {last.epoch}, {best.train_loss:.4g} in epoch {best.epoch}"
            "; a smaller learning_rate, a longer warm-up, or gradient_clip"
        )
    if first.epoch != 1 or len(history) <= PATIENT_EPOCHS:
        return None
    lowest = min(facts.train_loss for facts in recent)
    if lowest <= first.train_loss - LEAST_FALL * abs(first.train_loss):
        return None
    return (
        f"the loss does not fall: {lowest:.4g} at best in epochs {recent[0].epoch} to {recent[-1].epoch}, "
        f"{first.train_loss:.4g} in epoch 1; another learning_rate (often a smaller one), or look at the labels"
    )


def _missing_gradient(recent: Sequence[EpochFacts]) -> str | None:
    names = [name for name in recent[0].without_gradient if name in recent[-1].without_gradient]
    if len(recent) < UNUSED_EPOCHS or not names:
        return None
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"weights without a gradient: {shown}; the answers do not depend on them; remove them, or use them in forward"
    )


def _zero_gradient(last: EpochFacts) -> str | None:
    if last.gradient_norm != 0.0 or last.train_loss == 0.0:  # a loss of 0 has nothing left to learn
        return None
    return (
        f"the gradient is zero in epoch {last.epoch}: nothing is learned any more; a smaller learning_rate, another "
        "initialisation, or activations that do not die"
    )


def _exploding_gradient(history: Sequence[EpochFacts]) -> str | None:
    norm = history[-1].gradient_norm
    if norm is None:
        return None
    if not math.isfinite(norm):
        return None if history[-1].overflows_are_usual else _exploded(history[-1], "finite ones before")
    known = [facts.gradient_norm for facts in history[:-1]]
    before = [norm for norm in known if norm is not None and math.isfinite(norm)]
    if len(before) < KNOWN_NORMS or norm <= max(EXPLODING * statistics.median(before), *before):
        return None
    return _exploded(history[-1], f"{statistics.median(before):.4g} in the median before")


def _exploded(last: EpochFacts, before: str) -> str:
    return (
        f"the gradient explodes: norm {last.gradient_norm:.4g} in epoch {last.epoch}, {before}; a smaller "
        "learning_rate, a longer warmup_fraction, or gradient_clip"
    )


def _growing_gap(history: Sequence[EpochFacts]) -> str | None:
    """Whether validation has been getting worse for some epochs while training went on getting better."""
    losses = [facts.validation_loss for facts in history if facts.validation_loss is not None]
    recent = losses[-PATIENT_EPOCHS:]
    if len(losses) < len(history) or len(losses) <= PATIENT_EPOCHS:
        return None
    last, best = history[-1], min(range(len(losses)), key=losses.__getitem__)
    lowest, first = losses[best], abs(history[0].train_loss)
    has_risen = min(recent) > RISE_OF_VALIDATION * lowest
    is_apart = losses[-1] - last.train_loss > GAP_OF_LOSSES * first and last.train_loss < history[best].train_loss
    if not (has_risen and is_apart):
        return None
    return (
        f"validation falls behind training: loss {losses[-1]:.4g} against {last.train_loss:.4g} in epoch {last.epoch}, "
        f"and {lowest:.4g} at best, in epoch {history[best].epoch}; more weight_decay, dropout or augmentation, a "
        "smaller network, or patience to stop earlier"
    )


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f}"
