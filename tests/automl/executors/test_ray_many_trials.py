"""Thousands of trials one after the other on the same groups: the last cost what the first did, and no memory."""

import pytest

from benchmarks.startup.parts import Sizes, measure_many

pytestmark = [pytest.mark.ray, pytest.mark.slow]

ATTEMPTS = 3
"""Other work on the machine makes some hundred trials slower; what is built into the executor, all attempts."""


@pytest.mark.timeout(400)
def test_ray_two_thousand_trials_cost_the_same_and_leave_nothing_in_memory(ray_cluster: None) -> None:
    growth = []
    for _ in range(ATTEMPTS):
        many = measure_many(Sizes())
        assert many.trials == 2000
        assert many.memory_mb < 100.0
        growth.append(many.growth)
        if many.growth <= 1.3:
            return
    pytest.fail(f"the last hundred trials cost {growth} times as much as the first hundred")
