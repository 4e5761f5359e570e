import pytest

from automl.pruners.rungs import passes, rung_epochs


@pytest.mark.parametrize(
    "first, last, eta, rungs",
    [(1, 9, 3, (1, 3)), (1, 10, 3, (1, 3, 9)), (2, 16, 2, (2, 4, 8)), (1, 1, 3, ()), (5, 3, 3, ())],
)
def test_rung_epochs_grow_by_eta_below_the_last_epoch(first: int, last: int, eta: int, rungs: tuple[int, ...]) -> None:
    assert rung_epochs(first, last, eta) == rungs


@pytest.mark.parametrize("wrong", [(0, 9, 3), (1, 9, 1)])
def test_rung_epochs_wrong_arguments_are_refused(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="at least"):
        rung_epochs(*wrong)


def test_passes_keeps_one_of_eta_and_ties_with_it() -> None:
    assert [passes(better, 5, 3) for better in range(6)] == [True, True, False, False, False, False]
    assert passes(0, 0, 3)
    assert [passes(better, 1, 3) for better in range(2)] == [True, False]
