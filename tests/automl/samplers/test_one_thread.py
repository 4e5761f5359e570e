"""Linear algebra in one thread, and as before afterwards."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from automl.registry import sampler_class
from automl.samplers import surrogate_evolution
from automl.samplers.one_thread import one_thread
from automl.samplers.surrogate.model import Model
from automl.samplers.surrogate.records import Records
from tests.contracts.sampler_contract import MIXED_SPACE, history


def threads() -> set[int]:
    """Of the libraries for linear algebra."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_threads_are_one_and_then_as_before() -> None:
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        with one_thread(), one_thread():
            assert threads() == {1}
        assert threads() == {2}
        with pytest.raises(ZeroDivisionError), one_thread():
            raise ZeroDivisionError
        assert threads() == {2}


def test_proposals_are_computed_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []

    class Watched(Model):
        def __init__(self, records: Records, rng: np.random.Generator) -> None:
            seen.append(threads())
            super().__init__(records, rng)

    monkeypatch.setattr(surrogate_evolution, "Model", Watched)
    with threadpool_limits(2, user_api="blas"):
        sampler_class("surrogate_evolution")("minimize").suggest(MIXED_SPACE, history(20), np.random.default_rng(0))
    assert seen == [{1}]
