"""A network of one's own that stays the same, and all that can be chosen of its training.

    automl search --space examples/training_only.py --data digits --trials 20

For other data give the task: `training_parameters("text_classification")`, and None for data or a loss of your own.
"""

from search_spaces import Float, SearchSpace
from search_spaces.training_parameters import training_parameters, usual_training

TASK = "image_classification"

SPACE = SearchSpace(
    "training_only_example",
    training_parameters(TASK) | {"learning_rate": Float(low=3e-4, high=3e-2, log=True)},  # ours is narrower
    task=TASK,
    defaults=usual_training(TASK, learning_rate=1e-2),
    description="A small network for images, and how it is trained.",
)


def build_model(configuration: dict, input_shape: tuple, num_classes: int):
    """Build the network; nothing of it is searched."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(input_shape[0], 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * 32, num_classes),
    )
