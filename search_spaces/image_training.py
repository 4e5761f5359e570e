"""How networks for images are trained: the parameters that the catalogue's spaces of such networks have in common."""

from collections.abc import Mapping, Sequence

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Parameter

__all__ = ["image_training", "usual_image_training"]


def image_training(highest_learning_rate: float, optimizers: Sequence[str]) -> dict[str, Parameter]:
    """Return the parameters by name.

    Args:
        highest_learning_rate: above 1e-4; attention diverges at rates that suit convolutions.
        optimizers: to choose from, `adamw` among them.
    """
    return {
        "optimizer": Categorical(choices=tuple(optimizers)),
        "learning_rate": Float(low=1e-4, high=highest_learning_rate, log=True),
        "weight_decay": Float(low=1e-6, high=1e-1, log=True),
        "batch_size": Categorical(choices=(32, 64, 128), ordered=True),
        "label_smoothing": Float(low=0.0, high=0.2, step=0.05),
        "augmentation": Float(low=0.0, high=1.0),
    }


def usual_image_training(learning_rate: float) -> Mapping[str, JsonScalar]:
    """Return the defaults of these parameters, with a learning rate that suits the networks."""
    return {
        "optimizer": "adamw",
        "learning_rate": learning_rate,
        "weight_decay": 1e-2,
        "batch_size": 64,
        "label_smoothing": 0.05,
        "augmentation": 0.2,
    }
