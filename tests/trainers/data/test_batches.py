import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.data.batches import epoch_batches, epoch_order, micro_batches, shard


def test_orders_differ_between_epochs_and_seeds_cover_all_items_and_repeat() -> None:
    orders = {(seed, epoch): tuple(epoch_order(6, seed, epoch)) for seed in (0, 1) for epoch in (1, 2, 3)}
    assert len(set(orders.values())) == 6
    assert all(sorted(order) == list(range(6)) for order in orders.values())
    np.testing.assert_array_equal(epoch_order(6, 0, 2), orders[0, 2])


@given(st.integers(1, 300), st.integers(1, 70), st.integers(1, 5), st.integers(1, 4))
def test_every_item_is_trained_exactly_once_per_epoch(
    items: int, batch_size: int, world_size: int, accumulate: int
) -> None:
    micro_batch = -(-batch_size // accumulate)
    seen: list[int] = []
    for batch in epoch_batches(items, batch_size):
        assert 1 <= batch.stop - batch.start <= batch_size
        whole = micro_batches(batch, micro_batch, 0, 1)
        assert len(whole) <= accumulate
        shares = [micro_batches(batch, micro_batch, rank, world_size) for rank in range(world_size)]
        for part, own in zip(whole, zip(*shares, strict=True), strict=True):
            sizes = [share.stop - share.start for share in own]
            assert max(sizes) - min(sizes) <= 1
            assert max(sizes) <= -(-batch_size // (world_size * accumulate))
            computed = [position for share in own for position in range(share.start, share.stop)]
            assert computed == list(range(part.start, part.stop))  # the same items at a time as with one rank
            seen += computed
    assert seen == list(range(items))


@given(st.integers(1, 300), st.integers(1, 70))
def test_steps_are_as_few_as_possible_and_no_batch_is_a_small_rest(items: int, batch_size: int) -> None:
    sizes = [batch.stop - batch.start for batch in epoch_batches(items, batch_size)]
    assert len(sizes) == -(-items // batch_size)
    assert all(size == batch_size for size in sizes[:-2])
    if len(sizes) > 1:
        assert all(2 * size >= batch_size for size in sizes)


def test_half_a_batch_stays_a_last_partial_batch() -> None:
    assert epoch_batches(10, 4) == [slice(0, 4), slice(4, 8), slice(8, 10)]
    assert epoch_batches(9, 4) == [slice(0, 4), slice(4, 7), slice(7, 9)]


@given(st.integers(0, 50), st.integers(1, 7))
def test_shards_are_even_and_complete(items: int, world_size: int) -> None:
    shards = [shard(items, rank, world_size) for rank in range(world_size)]
    sizes = [part.stop - part.start for part in shards]
    assert sum(sizes) == items and max(sizes) - min(sizes) <= 1
    assert shards[0].start == 0 and shards[-1].stop == items


@pytest.mark.parametrize(("items", "batch_size"), [(0, 1), (1, 0)])
def test_empty_epochs_and_batches_are_refused(items: int, batch_size: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        epoch_batches(items, batch_size)
