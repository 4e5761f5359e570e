"""The arithmetic of successive halving: at which epochs trials are judged, and who passes."""

__all__ = ["passes", "rung_epochs", "usual_first_rung"]


def rung_epochs(min_epochs: int, max_epochs: int, eta: int) -> tuple[int, ...]:
    """The epochs at which trials are judged: min_epochs * eta**k below max_epochs.

    Args:
        min_epochs: r of the paper; the first rung, at least 1.
        max_epochs: R of the paper; a trial that gets there is complete and not judged.
        eta: the reduction factor, at least 2.

    Raises:
        ValueError: an argument is out of its range.
    """
    if min_epochs < 1:
        raise ValueError(f"min_epochs={min_epochs} must be at least 1")
    if eta < 2:
        raise ValueError(f"eta={eta} must be at least 2")
    rungs = []
    epoch = min_epochs
    while epoch < max_epochs:
        rungs.append(epoch)
        epoch *= eta
    return tuple(rungs)


def usual_first_rung(max_epochs: int) -> int:
    """A fifth of a full training: the first epochs are those of the warm-up, and favour high learning rates."""
    return max(1, round(max_epochs / 5))


def passes(better: int, others: int, eta: int) -> bool:
    """Whether a trial is within the best 1/eta of those that have been at a rung, itself among them.

    At least one passes; a tie with the last one that passes does, too.

    Args:
        better: how many of the others have a smaller loss.
        others: how many others have been there.
        eta: the reduction factor.
    """
    return better < max(1, (others + 1) // eta)
