"""How the catalogue's networks are trained: the parameters that its spaces have in common, by kind of data."""

from collections.abc import Mapping, Sequence

from search_spaces.configuration import JsonScalar
from search_spaces.parameters import Categorical, Float, Parameter

__all__ = [
    "image_training",
    "table_training",
    "text_training",
    "usual_image_training",
    "usual_table_training",
    "usual_text_training",
]


def image_training(highest_learning_rate: float, optimizers: Sequence[str]) -> dict[str, Parameter]:
    """Return the parameters of networks for images, by name; see `table_training`."""
    return _training(highest_learning_rate, optimizers, (32, 64, 128)) | _changes_of_items(most=1.0)


def text_training(highest_learning_rate: float) -> dict[str, Parameter]:
    """Return the parameters of networks for texts, by name; see `table_training`."""
    return _training(highest_learning_rate, ("adam", "adamw"), (32, 64, 128)) | _changes_of_items(most=0.4)


def table_training(highest_learning_rate: float, optimizers: Sequence[str]) -> dict[str, Parameter]:
    """Return the parameters of networks for tables, by name.

    Args:
        highest_learning_rate: above 1e-4; attention and deep networks diverge at rates that suit others.
        optimizers: to choose from, `adamw` among them.
    """
    return _training(highest_learning_rate, optimizers, (32, 64, 128, 256, 512))


def usual_image_training(learning_rate: float) -> Mapping[str, JsonScalar]:
    """Return the defaults of `image_training`, with a learning rate that suits the networks."""
    return _usual(learning_rate, batch_size=64) | {"label_smoothing": 0.05, "augmentation": 0.2}


def usual_text_training(learning_rate: float) -> Mapping[str, JsonScalar]:
    """Return the defaults of `text_training`, with a learning rate that suits the networks."""
    return _usual(learning_rate, batch_size=64) | {"label_smoothing": 0.05, "augmentation": 0.1}


def usual_table_training(learning_rate: float) -> Mapping[str, JsonScalar]:
    """Return the defaults of `table_training`, with a learning rate that suits the networks."""
    return _usual(learning_rate, batch_size=128)


def _training(
    highest_learning_rate: float, optimizers: Sequence[str], batch_sizes: tuple[int, ...]
) -> dict[str, Parameter]:
    return {
        "optimizer": Categorical(choices=tuple(optimizers)),
        "learning_rate": Float(low=1e-4, high=highest_learning_rate, log=True),
        "weight_decay": Float(low=1e-6, high=1e-1, log=True),
        "batch_size": Categorical(choices=batch_sizes, ordered=True),
    }


def _changes_of_items(most: float) -> dict[str, Parameter]:
    """What softens labels and changes inputs."""
    return {
        "label_smoothing": Float(low=0.0, high=0.2, step=0.05),
        "augmentation": Float(low=0.0, high=most),
    }


def _usual(learning_rate: float, batch_size: int) -> dict[str, JsonScalar]:
    return {"optimizer": "adamw", "learning_rate": learning_rate, "weight_decay": 1e-2, "batch_size": batch_size}
