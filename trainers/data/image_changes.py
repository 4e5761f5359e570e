"""All that a configuration does to the training images of one epoch, drawn for its items in order."""

from typing import Protocol

import torch

from trainers.config import TrainConfig
from trainers.data.augmentation import draw_changes
from trainers.data.random_erasing import Erasures, draw_erasures
from trainers.seeds import Purpose, random_generator

__all__ = ["Drawn", "draw_image_changes"]


class Drawn(Protocol):
    """One change to each of N images; row i belongs to the i-th item in the order of the epoch."""

    def __getitem__(self, items: torch.Tensor | slice) -> "Drawn":
        """Return the changes to some of the images; indices lie on the host."""

    def apply(self, images_NCHW: torch.Tensor) -> torch.Tensor:
        """Return changed copies of these images, whose pixels are in [0, 1]."""


def draw_image_changes(
    training: TrainConfig, epoch: int, items: int, mean: tuple[float, ...], device: torch.device
) -> tuple[Drawn, ...]:
    """Draw the changes of an epoch, in the order in which they are made.

    Args:
        training: says which, and how strong.
        epoch: counted from 1.
        items: N.
        mean: of each channel over the training images; what is erased has this colour.
        device: where the images are.
    """
    seed, drawn = training.seed, list[Drawn]()
    if training.augmentation > 0.0:
        generator = random_generator(Purpose.AUGMENTATION, seed, epoch)
        drawn.append(draw_changes(items, training.augmentation, generator).to(device))
    if training.rand_augment > 0.0:
        from trainers.data.rand_augment import draw_operations  # loads kornia

        generator = random_generator(Purpose.OPERATIONS, seed, epoch)
        drawn.append(draw_operations(items, training.rand_augment, generator).to(device))
    if training.random_erasing > 0.0:
        generator = random_generator(Purpose.ERASING, seed, epoch)
        boxes_N4 = draw_erasures(items, training.random_erasing, generator)
        drawn.append(Erasures(boxes_N4.to(device), torch.tensor(mean, device=device)))
    return tuple(drawn)
