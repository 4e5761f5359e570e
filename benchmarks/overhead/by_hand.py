"""The loop that an expert writes for one model: nothing but the training, its data in memory, and a validation."""

import time
from collections.abc import Callable, Sequence

import torch
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from trainers.distributed import Ranks

__all__ = ["Batches", "train_by_hand"]

Batches = Callable[[torch.Tensor], tuple[tuple[torch.Tensor, ...], torch.Tensor]]
"""Indices of items -> (inputs, labels), ready for the network."""


def train_by_hand(
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
    """Train and return the seconds of each epoch."""
    model = network if ranks.world_size == 1 else DistributedDataParallel(network, process_group=ranks.main)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=1e-4, fused=True)
    steps = epochs * -(-items // batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, learning_rate, total_steps=steps, pct_start=0.1)
    generator = torch.Generator().manual_seed(0)
    share = batch_size // ranks.world_size
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        order = torch.randperm(items, generator=generator)
        model.train()
        loss_sum = torch.zeros(())
        for start in range(0, items, batch_size):
            own = order[start : start + batch_size][ranks.rank * share : (ranks.rank + 1) * share]
            inputs, labels = train(own)
            loss = functional.cross_entropy(model(*inputs), labels)
            loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            loss_sum += loss.detach()
        model.eval()
        right = torch.zeros((), dtype=torch.int64)
        own_items = torch.arange(validation_items)[ranks.rank :: ranks.world_size]
        with torch.no_grad():
            for part in own_items.split(512):  # type: ignore[no-untyped-call]  # likewise
                inputs, labels = validation(part)
                right += (network(*inputs).argmax(dim=1) == labels).sum()
        ranks.sum_(right)
        float(loss_sum)
        seconds.append(time.perf_counter() - began)
    return seconds
