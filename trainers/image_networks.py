"""Networks that classify images: built from a configuration, looked over before training, and measured."""

import logging
from collections.abc import Mapping

import torch
from torch import nn

from search_spaces.catalog import load
from search_spaces.configuration import JsonScalar
from trainers.data.arrays import ImageData
from trainers.data.batches import shard
from trainers.distributed import Ranks
from trainers.errors import UserCodeError
from trainers.images import DeviceImages
from trainers.metrics import ClassificationMeter
from trainers.precision import MixedPrecision

__all__ = ["build_network", "check_logits", "count_weights", "measure_images", "multiply_adds", "unused_weights"]

logger = logging.getLogger(__name__)


def build_network(space: str, configuration: Mapping[str, JsonScalar], data: ImageData) -> nn.Module:
    """Build the network of a configuration, with fresh weights from torch's global generator, on the CPU."""
    network: nn.Module = load(space).build_model(configuration, data.input_shape, data.num_classes)
    return network


def count_weights(space: str, configuration: Mapping[str, JsonScalar], data: ImageData) -> int:
    """Count the weights of a configuration's network; it is built without memory, and draws no random numbers."""
    from search_spaces.cost import count_parameters

    with torch.device("meta"):
        return count_parameters(build_network(space, configuration, data))


def measure_images(
    network: nn.Module, images: DeviceImages, precision: MixedPrecision, ranks: Ranks, data: ImageData
) -> dict[str, float]:
    """Measure a network on a split; each rank answers its own share of the items, each item once.

    The network is called without any wrapper, so ranks with unequal shares do not wait for each other on the
    way. The number of images per call depends on their size alone, so that a value can be reproduced to the last bit.

    Raises:
        PeerFailedError: another rank's network failed.
    """
    meter = ClassificationMeter(data.num_classes, ranks.device)
    own = shard(len(images), ranks.rank, ranks.world_size)
    size = min(512, max(1, 2**22 // max(1, images.pixels_per_image)))
    network.eval()
    with ranks.together("validation"), torch.no_grad():
        for start in range(own.start, own.stop, size):
            images_NCHW, labels_N = images.take(slice(start, min(start + size, own.stop)))
            with precision.autocast():
                logits_NK = network(images_NCHW)
            meter.add(logits_NK, labels_N)
    return meter.total(ranks)


def check_logits(network: nn.Module, image_1CHW: torch.Tensor, num_classes: int) -> None:
    """Try a network with one image.

    Raises:
        UserCodeError: the answer is no tensor of one logit per class.
    """
    network.eval()
    with torch.no_grad():
        logits = network(image_1CHW)
    shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
    if shape != (1, num_classes):
        raise UserCodeError(
            f"the network answers one image of shape {tuple(image_1CHW.shape[1:])} with {shape}; "
            f"needed: logits of shape {(1, num_classes)}"
        )


def unused_weights(network: nn.Module, image_1CHW: torch.Tensor) -> list[str]:
    """Return the names of weights that the logits do not depend on, tried with one image.

    DistributedDataParallel must be told of them, or it waits for their gradients for ever.
    """
    network.eval()
    network(image_1CHW).float().sum().backward()
    weights = list(network.named_parameters())
    unused = [name for name, weight in weights if weight.requires_grad and weight.grad is None]
    network.zero_grad(set_to_none=True)
    return unused


def multiply_adds(network: nn.Module, input_shape: tuple[int, int, int]) -> int | None:
    """Return the cost of one image, or None for a network that shapes alone cannot run."""
    from search_spaces.cost import count_multiply_adds

    try:
        return count_multiply_adds(network, input_shape)
    except (RuntimeError, NotImplementedError) as error:
        logger.warning("multiply-adds not counted reason=%s", error)
        return None
