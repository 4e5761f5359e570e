"""Pictures of a training for TensorBoard: curves, histograms of weights and gradients, the graph, some images.

Importing this module loads no torch: whoever plans a search asks whether the package is there.

Shapes: N items, C channels, H height, W width.
"""

import logging
import warnings
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING

from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words
from trainers.artifact_files import is_url
from trainers.errors import UserCodeError

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.utils.tensorboard import SummaryWriter

    from trainers.problem import Batch, Problem

__all__ = ["INSTALL", "OF_PARTS", "OF_STAGES", "Board", "is_installed"]

logger = logging.getLogger(__name__)

INSTALL = "pip install 'automl[tensorboard]'"
OF_PARTS = (
    "The weights are cut over the ranks (fsdp): the histograms show the part of each weight that rank 0 holds, and "
    "there is no graph."
)
OF_STAGES = (
    "Each rank has some of the layers (pipeline): the graph and the histograms show those of rank 0, the first ones."
)
MOST_IMAGES = 16
_COURSE = frozenset(
    {
        "epoch_s", "items_per_s", "step_ms", "data_wait_share", "utilisation_percent", "memory_mib", "gradient_norm",
        "skipped_steps", "learning_rate",
    }
)  # fmt: skip
"""Metrics that tell how a training went rather than what it is worth."""


def is_installed() -> bool:
    """Whether the package `tensorboard` is there; it is not loaded."""
    return find_spec("tensorboard") is not None


class Board:
    """Writes event files of one training; one rank does.

    Args:
        folder: where they go; files of earlier attempts of the same training may lie there.
        first_epoch: the first epoch that will be written; what an earlier attempt wrote of it and of later ones is
            hidden.
        problem: what is learned.

    Attributes:
        wants_images: whether `batch` shall be called with the first batch of the training.

    Raises:
        UserCodeError: the package `tensorboard` is missing, or the folder is a URL.
        OSError: the folder cannot be written.
    """

    def __init__(self, folder: str, first_epoch: int, problem: "Problem") -> None:
        self._writer = _writer(folder, first_epoch)
        self._problem = problem
        self._gradients: dict[str, torch.Tensor] = {}
        self.wants_images = first_epoch == 1

    def graph(self, network: "nn.Module") -> None:
        """Draw the network, as it is called with one item; one that cannot be traced is left out.

        Training flags, weights and random states are afterwards what they were.
        """
        import torch

        from trainers.networks import answered, repeated

        inputs = self._problem.example().inputs
        devices = [inputs[0].device] if inputs[0].device.type == "cuda" else []
        flags = [(module, module.training) for module in network.modules()]
        try:
            with warnings.catch_warnings(), torch.random.fork_rng(devices=devices):
                warnings.simplefilter("ignore")  # tracing warns of every size that it takes for fixed
                _, times = answered(network, inputs)
                self._writer.add_graph(network, repeated(inputs, times), use_strict_trace=False)
        except OWN_CODE_ERRORS as error:
            logger.warning("the graph is not drawn reason=%s", error_in_words(error))
        finally:
            for module, flag in flags:
                module.training = flag

    def note(self, text: str) -> None:
        """Say in a text of the board what it does not show."""
        self._writer.add_text("note", text)

    def batch(self, batch: "Batch") -> None:
        """Show the images of the first batch of the training, as they are trained."""
        self.wants_images = False
        images_NCHW = batch.inputs[0]
        if images_NCHW.dim() == 4 and images_NCHW.shape[1] in (1, 3):
            self._writer.add_images("images/first_batch", self._as_seen(images_NCHW[:MOST_IMAGES]), 0)

    def gradients(self, weights: "Iterable[tuple[str, nn.Parameter]]") -> None:
        """Keep the gradients of the last step of an epoch until it is written."""
        from trainers.optimizers.sharded import own_part

        self._gradients = {
            name: own_part(weight.grad).cpu().clone() for name, weight in weights if weight.grad is not None
        }

    def epoch(self, epoch: int, metrics: Mapping[str, float], weights: "Iterable[tuple[str, torch.Tensor]]") -> None:
        """Write an epoch, down to the disk.

        Args:
            epoch: counted from 1.
            metrics: all that was measured.
            weights: those in training.
        """
        from trainers.optimizers.sharded import own_part

        for name, value in metrics.items():
            self._writer.add_scalar(_tag(name), value, epoch)
        for name, weight in weights:
            self._add_histogram(f"weights/{name}", own_part(weight.detach()).cpu(), epoch)
        for name, gradient in self._gradients.items():
            self._add_histogram(f"gradients/{name}", gradient, epoch)
        self._writer.flush()

    def close(self) -> None:
        """End the files."""
        self._writer.close()

    def _add_histogram(self, tag: str, values: "torch.Tensor", epoch: int) -> None:
        import torch

        finite = values[torch.isfinite(values)].float()
        if len(finite):
            self._writer.add_histogram(tag, finite, epoch)

    def _as_seen(self, images_NCHW: "torch.Tensor") -> "torch.Tensor":
        """Take the normalisation back, where the problem says which it is."""
        known = self._problem.blueprint()
        mean_C11, std_C11 = (_per_channel(known.get(name), images_NCHW) for name in ("mean", "std"))
        if mean_C11 is not None and std_C11 is not None:
            images_NCHW = images_NCHW * std_C11 + mean_C11
        return images_NCHW.clamp(0.0, 1.0).cpu()


def _writer(folder: str, first_epoch: int) -> "SummaryWriter":
    if is_url(folder):
        raise UserCodeError(f"TensorBoard files grow with every epoch, in a folder and not in {folder}")
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserCodeError(f"TensorBoard files need the package `tensorboard`: {INSTALL} ({error})") from error
    return SummaryWriter(folder, purge_step=first_epoch)


def _per_channel(values: object, images_NCHW: "torch.Tensor") -> "torch.Tensor | None":
    if not isinstance(values, list) or len(values) != images_NCHW.shape[1]:
        return None
    import torch

    return torch.tensor(values, dtype=torch.float32, device=images_NCHW.device).view(-1, 1, 1)


def _tag(name: str) -> str:
    match name:
        case "train_loss":
            return "loss/training"
        case "loss":
            return "loss/validation"
        case _:
            return f"{'course' if name in _COURSE else 'metrics'}/{name}"
