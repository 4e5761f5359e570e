"""How networks for texts are trained: the parameters that the catalogue's spaces of such networks have in common."""

from collections.abc import Mapping

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Parameter

__all__ = ["text_training", "usual_text_training"]


def text_training(highest_learning_rate: float) -> dict[str, Parameter]:
    """Return the parameters by name.

    Args:
        highest_learning_rate: above 1e-4; deep networks diverge at rates that suit shallow ones.
    """
    return {
        "optimizer": Categorical(choices=("adam", "adamw")),
        "learning_rate": Float(low=1e-4, high=highest_learning_rate, log=True),
        "weight_decay": Float(low=1e-6, high=1e-1, log=True),
        "batch_size": Categorical(choices=(32, 64, 128), ordered=True),
        "label_smoothing": Float(low=0.0, high=0.2, step=0.05),
        "augmentation": Float(low=0.0, high=0.4),
    }


def usual_text_training(learning_rate: float) -> Mapping[str, JsonScalar]:
    """Return the defaults of these parameters, with a learning rate that suits the networks."""
    return {
        "optimizer": "adamw",
        "learning_rate": learning_rate,
        "weight_decay": 1e-2,
        "batch_size": 64,
        "label_smoothing": 0.05,
        "augmentation": 0.1,
    }
