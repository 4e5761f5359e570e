"""A learning rate that falls along a line to 0."""

__all__ = ["linear"]


def linear(step: int, steps: int) -> float:
    """Return the share of the steps that is left: 1 at the beginning, 0 at the end.

    Source: used by Devlin et al. 2019, BERT, arXiv 1810.04805, appendix A.2; best of the simple schedules in Defazio
        et al. 2023, arXiv 2310.07831.
    """
    return 1.0 - step / steps
