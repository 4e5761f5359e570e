"""The same training as a Lightning module, with everything of Lightning's switched off that is not the training."""

import logging
import os
import time
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from benchmarks.overhead.by_hand import Batches
from trainers.distributed import Ranks

__all__ = ["train_with_lightning"]


class _Indices(torch.utils.data.Dataset[torch.Tensor]):
    """This rank's shares of whole batches of indices, so that no item is fetched on its own."""

    def __init__(self, items: int, batch_size: int, ranks: Ranks, *, shuffle: bool) -> None:
        self._items, self._batch_size, self._ranks, self._shuffle = items, batch_size, ranks, shuffle
        self._order = torch.arange(items)
        self._generator = torch.Generator().manual_seed(0)  # the same on all ranks

    def __len__(self) -> int:
        return -(-self._items // self._batch_size)

    def __getitem__(self, index: int) -> torch.Tensor:
        if self._shuffle and index == 0:
            self._order = torch.randperm(self._items, generator=self._generator)
        batch = self._order[index * self._batch_size : (index + 1) * self._batch_size]
        return batch[self._ranks.rank :: self._ranks.world_size]


class _Module(LightningModule):
    def __init__(
        self, network: nn.Module, train: Batches, validation: Batches, learning_rate: float, steps: int
    ) -> None:
        super().__init__()
        self.network, self.batches, self.validation_batches = network, train, validation
        self.learning_rate, self.steps = learning_rate, steps

    def training_step(self, items: torch.Tensor, _: int) -> torch.Tensor:
        inputs, labels = self.batches(items)
        return functional.cross_entropy(self.network(*inputs), labels)

    def validation_step(self, items: torch.Tensor, _: int) -> None:
        inputs, labels = self.validation_batches(items)
        self.log("right", (self.network(*inputs).argmax(dim=1) == labels).float().mean(), batch_size=len(labels))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.learning_rate, weight_decay=1e-4, fused=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, self.learning_rate, total_steps=self.steps, pct_start=0.1
        )
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


class _Clock(Callback):
    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._began = 0.0

    def on_train_epoch_start(self, *_: Any) -> None:
        self._began = time.perf_counter()

    def on_train_epoch_end(self, *_: Any) -> None:
        self.seconds.append(time.perf_counter() - self._began)


def train_with_lightning(
    network: nn.Module,
    train: Batches,
    items: int,
    validation: Batches,
    validation_items: int,
    *,
    batch_size: int,
    learning_rate: float,
    epochs: int,
    ranks: Ranks,
) -> Sequence[float]:
    """Train and return the seconds of each epoch; the ranks' process group is open, and Lightning takes it as it is."""
    os.environ |= _told(ranks)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    clock = _Clock()
    steps = epochs * -(-items // batch_size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice about loader workers, of no use to data in memory
        trainer = Trainer(
            accelerator="cpu", devices=ranks.world_size, strategy="auto" if ranks.world_size == 1 else "ddp",
            use_distributed_sampler=False, max_epochs=epochs, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0, gradient_clip_val=1.0,
            callbacks=[clock],
        )  # fmt: skip
        trainer.fit(
            _Module(network, train, validation, learning_rate, steps),
            DataLoader(_Indices(items, batch_size, ranks, shuffle=True), batch_size=None),
            DataLoader(_Indices(validation_items, 512, ranks, shuffle=False), batch_size=None),
        )
    return clock.seconds


def _told(ranks: Ranks) -> dict[str, str]:
    """The ranks as Lightning is told of them by torchrun, so that it starts no processes; nothing for one alone."""
    if ranks.world_size == 1:
        return {}
    rank, size = str(ranks.rank), str(ranks.world_size)
    return {
        "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "GROUP_RANK": "0",
        "TORCHELASTIC_RUN_ID": "benchmark", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1",
    }  # fmt: skip
