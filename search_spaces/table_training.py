"""How networks for tables are trained: the parameters that the catalogue's spaces of such networks have in common."""

from collections.abc import Mapping, Sequence

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Parameter

__all__ = ["table_training", "usual_table_training"]


def table_training(highest_learning_rate: float, optimizers: Sequence[str]) -> dict[str, Parameter]:
    """Return the parameters by name.

    Args:
        highest_learning_rate: above 1e-4; attention diverges at rates that suit fully connected layers.
        optimizers: to choose from, `adamw` among them.
    """
    return {
        "optimizer": Categorical(choices=tuple(optimizers)),
        "learning_rate": Float(low=1e-4, high=highest_learning_rate, log=True),
        "weight_decay": Float(low=1e-6, high=1e-1, log=True),
        "batch_size": Categorical(choices=(32, 64, 128, 256, 512), ordered=True),
    }


def usual_table_training(learning_rate: float) -> Mapping[str, JsonScalar]:
    """Return the defaults of these parameters, with a learning rate that suits the networks."""
    return {"optimizer": "adamw", "learning_rate": learning_rate, "weight_decay": 1e-2, "batch_size": 128}
