"""In which number format a network computes: autocast and gradient scaling, on CPUs and GPUs alike.

Weights, optimizer state and losses stay float32; only the network's own arithmetic changes.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal, TypeAlias

import torch

from trainers.config import Precision
from trainers.distributed import Ranks
from trainers.errors import UnsupportedDeviceError
from trainers.shared_scaling import SharedScaler

__all__ = [
    "MixedPrecision",
    "UsedPrecision",
    "check_precision",
    "float32_arithmetic",
    "resolve_precision",
    "unsupported",
]

UsedPrecision: TypeAlias = Literal["fp32", "tf32", "bf16", "fp16"]

_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}

_FIRST_SCALE = 2.0**16
"""What fp16 multiplies the mean loss of a batch by at first, as torch does; it adapts."""

_NEEDED: Mapping[UsedPrecision, tuple[int, int]] = {
    "fp32": (0, 0),
    "fp16": (5, 3),
    "tf32": (8, 0),
    "bf16": (8, 0),
}
"""The least compute capability whose arithmetic has the format (CUDA C++ Programming Guide, table of arithmetic
instructions). Torch also emulates bf16 on older GPUs, more slowly than it computes in fp32."""


def unsupported(requested: Precision, device_type: str, capability: tuple[int, int] | None) -> str | None:
    """Why a kind of device cannot compute in a precision, and what it can; None: it can.

    A CPU computes in all of them, and `auto` always fits.

    Args:
        requested: what was asked for.
        device_type: `cpu`, `cuda`, or another of torch's types, of which nothing is known.
        capability: compute capability of an NVIDIA GPU; None: it has none, as an AMD GPU.
    """
    if requested == "auto" or device_type != "cuda" or capability is None or capability >= _NEEDED[requested]:
        return None
    can = [name for name, needed in _NEEDED.items() if capability >= needed]
    return (
        f"precision {requested} needs compute capability {_dotted(_NEEDED[requested])} or higher, and this GPU has "
        f"{_dotted(capability)}, which computes in {' and '.join(can)}; use --precision auto"
    )


def check_precision(requested: Precision, device: torch.device) -> None:
    """Refuse a precision that a device cannot compute in, before any trial is started there.

    Raises:
        UnsupportedDeviceError: it cannot; the message names the device and what it can.
    """
    if device.type != "cuda" or torch.version.hip is not None:
        return  # an AMD GPU's numbers are no compute capability, and those that torch supports have both formats
    reason = unsupported(requested, device.type, torch.cuda.get_device_capability(device))
    if reason is not None:
        raise UnsupportedDeviceError(f"{device} ({torch.cuda.get_device_name(device)}): {reason}")


def resolve_precision(requested: Precision, device: torch.device) -> UsedPrecision:
    """Return the precision that is used: `auto` is bf16 on a GPU that has it, otherwise fp32.

    TF32 is a way of NVIDIA's GPUs to multiply float32 numbers; anything else multiplies them as they are, which is
    fp32. Nothing is refused: what was trained in bf16 can be measured on any device, however slowly.
    """
    if requested == "tf32" and (device.type != "cuda" or torch.version.hip is not None):
        return "fp32"
    if requested != "auto":
        return requested
    if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
        return "bf16"
    return "fp32"


@contextmanager
def float32_arithmetic(used: UsedPrecision, device: torch.device) -> Iterator[None]:
    """Let a GPU round float32 factors to TF32 in tf32 alone, and leave torch's settings as they were.

    Torch rounds them in convolutions without being asked, and not in matrix products. These two settings are the older
    ones, because `torch.compile` reads them and fails where only `fp32_precision` was set.
    """
    if device.type != "cuda":
        yield
        return
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    products.allow_tf32 = convolutions.allow_tf32 = used == "tf32"
    try:
        yield
    finally:
        products.allow_tf32, convolutions.allow_tf32 = before


def _dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


class MixedPrecision:
    """Autocast and, for fp16, the gradient scaler that belongs to it.

    fp16 always scales, on the CPU too: a gradient below 6e-8 would otherwise become 0 (Micikevicius et al.
    2018, arXiv 1710.03740, section 3.2). Where the same gradients reach every rank, all ranks skip the same steps;
    where each rank has gradients of its own, they must `share` what they find.
    """

    def __init__(self, used: UsedPrecision, device: torch.device) -> None:
        self.used: UsedPrecision = used
        self._device_type = device.type
        self._scaler = torch.amp.GradScaler(device.type, _FIRST_SCALE, enabled=used == "fp16")

    def expect_factor(self, factor: float) -> None:
        """Begin with a smaller scale where the mean loss is multiplied by a factor, too; before the first step.

        Otherwise gradients would overflow that do not without the factor.
        """
        if self._scaler.is_enabled():
            self._scaler = torch.amp.GradScaler(self._device_type, _FIRST_SCALE / factor)

    def share(self, ranks: Ranks) -> None:
        """Let all ranks skip a step when a gradient of one of them overflowed; to be called before the first step."""
        if ranks.main is not None and self._scaler.is_enabled():
            self._scaler = SharedScaler(ranks.device, ranks.main)

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context in which the forward pass runs."""
        if self.used not in _DTYPES:
            return nullcontext()
        return torch.autocast(self._device_type, dtype=_DTYPES[self.used])

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the loss to call `backward` on."""
        return self._scaler.scale(loss) if self._scaler.is_enabled() else loss

    def unscale(self, optimizer: torch.optim.Optimizer) -> None:
        """Bring the gradients back to their true size, before they are clipped."""
        if self._scaler.is_enabled():
            self._scaler.unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Make the optimizer step, unless a gradient overflowed.

        Returns:
            Whether the step was made. Only fp16 can skip one, and only fp16 waits for the device here.
        """
        if not self._scaler.is_enabled():
            optimizer.step()
            return True
        before = self._scaler.get_scale()
        self._scaler.step(optimizer)
        self._scaler.update()
        # The scale falls if and only if an infinite gradient was seen; once it is 0, it cannot fall any more.
        return self._scaler.get_scale() >= before > 0.0

    def state_dict(self) -> dict[str, Any]:
        """Return the scaler's state for a checkpoint; empty unless fp16."""
        return self._scaler.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the scaler of a checkpoint; an empty state leaves a new one."""
        if self._scaler.is_enabled() and state:
            self._scaler.load_state_dict(dict(state))
