"""How differently a network's ReLUs switch for different items: an untrained network that tells them apart learns."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from search_spaces.scores import NoScoreError
from search_spaces.twins import twin

__all__ = ["naswot"]


def naswot(model: nn.Module, inputs: tuple[Tensor, ...], targets: Tensor) -> float:
    """Return the log-determinant of the kernel whose entry (i, j) counts the ReLUs that items i and j switch alike.

    The targets make no difference. GELU, SiLU and their like count as ReLUs: they, too, open where their input is
    above 0.

    Raises:
        NoScoreError: the network has none of them, one of them sees something else than one item after the other, or
            the kernel is singular, as where two items switch all of them alike, or there are fewer of them than items.

    Source: Mellor et al. 2021, Neural Architecture Search without Training, arXiv 2006.04647, equations 2 and 3.
        There ReLUs on dead paths of a network are left out; networks of this catalogue have none.
    """
    items = len(inputs[0])
    with twin(model) as lent, torch.no_grad(), _SwitchedAlike(items) as alike:
        lent(*inputs)
    if alike.switches == 0:
        raise NoScoreError("the network has no ReLU, nor anything like it")
    # Rounding may hide from the determinant that it is 0.
    if torch.linalg.matrix_rank(alike.kernel_NN, hermitian=True) < items:
        raise NoScoreError(f"the kernel is singular: the {alike.switches} ReLUs do not tell all {items} items apart")
    return float(torch.linalg.slogdet(alike.kernel_NN).logabsdet)


class _SwitchedAlike(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's own hook of subclasses
    """Counts for each two items the ReLUs that do the same with both, while a network computes.

    Attributes:
        kernel_NN: the counts.
        switches: ReLUs in all, each place of a feature map being one.
    """

    def __init__(self, items: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.kernel_NN = torch.zeros(items, items, dtype=torch.float64)
        self.switches = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Look at the input of a ReLU, and then let it compute: it may do so in place."""
        if func.overloadpacket in _SWITCHES and not _has_other_floor(func, args):
            self._add(args[0])
        return func(*args, **(kwargs or {}))

    def _add(self, x: Tensor) -> None:
        items = len(self.kernel_NN)
        if x.dim() < 2 or len(x) != items:
            raise NoScoreError(f"a ReLU sees {tuple(x.shape)}, where the first dimension should be the {items} items")
        # (N, ...) -> (N, switches), 1 where a ReLU is open and 0 where it is closed
        open_NS = (x > 0).reshape(items, -1).to(torch.float32)
        switches = open_NS.shape[1]
        both_NN, one_N = (open_NS @ open_NS.T).double().cpu(), open_NS.sum(dim=1).double().cpu()
        # Alike are those that are open for both, and those that are closed for both: all but what either has open.
        self.kernel_NN += both_NN + (switches - one_N[:, None] - one_N + both_NN)
        self.switches += switches


def _has_other_floor(func: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether a hardtanh is cut off below elsewhere than at 0, unlike a ReLU6."""
    return func.overloadpacket in _CLIPPED and (len(arguments) < 2 or arguments[1] != 0)


_aten = torch.ops.aten
_CLIPPED = frozenset({_aten.hardtanh, _aten.hardtanh_})
_SWITCHES = _CLIPPED | {
    _aten.relu, _aten.relu_, _aten.leaky_relu, _aten.leaky_relu_, _aten.elu, _aten.elu_, _aten.gelu, _aten.silu,
    _aten.silu_, _aten.hardswish, _aten.hardswish_, _aten.mish,
}  # fmt: skip
