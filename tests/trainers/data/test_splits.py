import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.data.splits import stratified_split
from trainers.errors import BadDataError

NAMES = ("cat", "dog", "emu")


@given(
    st.lists(st.integers(3, 40), min_size=2, max_size=3),
    st.floats(0.01, 0.49),
    st.floats(0.01, 0.49),
    st.integers(-5, 5),
)
def test_split_covers_all_items_once_with_every_class_in_every_part(
    counts: list[int], test: float, validation: float, seed: int
) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    parts = stratified_split(labels, [test, validation], seed, NAMES[: len(counts)])
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    for part in parts:
        assert set(labels[part].tolist()) == set(range(len(counts)))
        assert (np.diff(part) > 0).all()
    for label, count in enumerate(counts):
        taken = int((labels[parts[0]] == label).sum())
        assert taken == 1 or abs(taken - test * count) <= 1.0


def test_split_depends_on_seed_and_labels_alone() -> None:
    labels = np.arange(90) % 3
    first, again, other = (stratified_split(labels, [0.2], seed, NAMES) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])


def test_split_of_one_class_does_not_depend_on_the_others() -> None:
    two, three = np.arange(60) % 2, np.concatenate([np.arange(60) % 2, np.full(30, 2)])
    kept = stratified_split(two, [0.3], 0, NAMES[:2])[0]
    np.testing.assert_array_equal(kept, [i for i in stratified_split(three, [0.3], 0, NAMES)[0] if i < 60])


def test_all_classes_with_too_few_items_are_named() -> None:
    labels = np.array([0, 0, 0, 1, 2, 2])
    with pytest.raises(BadDataError, match=r"at least 3 items.*'dog' has 1, 'emu' has 2; add items"):
        stratified_split(labels, [0.2, 0.2], 0, NAMES)
