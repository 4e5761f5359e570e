"""A network, a loss and data of one's own, trained as any network: ranks, precision, schedules, exact resumption.

    automl search --space examples/own_module.py --trials 10 --set loader_workers=2 --procs-per-trial 2

The file is the search space and names the data: it defines SPACE, `build_model` and `datasets`.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from search_spaces import Float, Integer, SearchSpace

if TYPE_CHECKING:
    import torch

SPACE = SearchSpace(
    "own_module",
    {
        "learning_rate": Float(low=1e-3, high=1e-1, log=True),
        "batch_size": Integer(low=32, high=128, step=32),
        "code": Integer(low=4, high=16, role="architecture"),
    },
    defaults={"learning_rate": 0.01, "batch_size": 64, "code": 8},
    description="A denoising autoencoder of handwritten digits.",
)
METRICS = {"psnr": "maximize"}


class NoisyImages:
    """Images with fresh noise in every epoch, and the clean ones to be told from them."""

    def __init__(self, images: Any) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> tuple[Any, Any]:
        import numpy as np

        clean = self.images[number]
        # NumPy's, Python's and torch's global generators differ from item to item, worker to worker, epoch to epoch.
        return clean + np.random.normal(0.0, 0.2, clean.shape).astype("float32"), clean


def datasets(source: str) -> tuple[NoisyImages, NoisyImages, NoisyImages]:
    """Return training, validation and test items."""
    from sklearn.datasets import load_digits

    images = (load_digits().data / 16.0).astype("float32")
    return NoisyImages(images[:1200]), NoisyImages(images[1200:1500]), NoisyImages(images[1500:])


def build_model(configuration: Mapping[str, Any]) -> Any:
    """Build the network of a configuration."""
    from torch import nn

    code = configuration["code"]
    return nn.Sequential(
        nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, code), nn.Linear(code, 48), nn.ReLU(), nn.Linear(48, 64)
    )


def loss(answers: "torch.Tensor", targets: "torch.Tensor") -> "torch.Tensor":
    """Return the loss of each item; their mean would do as well."""
    return (answers - targets).square().mean(dim=1)


def metrics(answers: "torch.Tensor", targets: "torch.Tensor") -> dict[str, Any]:
    """Measure all answers of a split at once."""
    return {"psnr": -10.0 * (answers - targets).square().mean().log10()}
