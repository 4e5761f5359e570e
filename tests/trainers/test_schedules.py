"""Learning rates as pure functions of the step."""

import math
from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainers.config import LearningRateScaling, ScheduleName, TrainConfig
from trainers.schedules import build_schedule
from trainers.schedules.cosine import cosine
from trainers.schedules.linear import linear
from trainers.schedules.one_cycle import one_cycle
from trainers.schedules.polynomial import polynomial
from trainers.schedules.scaling import scaled_learning_rate
from trainers.schedules.stepwise import stepwise
from trainers.schedules.warmup import with_warmup

NAMES = get_args(ScheduleName)


def rates(total_steps: int, **settings: Any) -> list[float]:
    schedule = build_schedule(TrainConfig(learning_rate=2.0, **settings), total_steps)
    return [schedule(step) for step in range(total_steps + 1)]


@given(
    st.sampled_from(NAMES),
    st.integers(1, 60),
    st.floats(0.0, 0.99),
    st.floats(0.1, 5.0),
    st.integers(1, 5),
    st.floats(0.01, 0.99),
)
def test_every_schedule_rises_to_the_peak_and_never_again(
    name: ScheduleName, total: int, warmup: float, power: float, drops: int, factor: float
) -> None:
    values = rates(
        total,
        schedule=name,
        warmup_fraction=warmup,
        schedule_power=power,
        schedule_drops=drops,
        schedule_factor=factor,
    )
    top = max(range(total), key=values.__getitem__)
    assert all(0.0 < value <= 2.0 for value in values[:total])
    assert values[top] == 2.0
    assert values[: top + 1] == sorted(values[: top + 1])
    assert values[top:] == sorted(values[top:], reverse=True)


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"constant"}))
def test_all_but_constant_end_low_and_stay_there(name: ScheduleName) -> None:
    schedule = build_schedule(TrainConfig(learning_rate=2.0, schedule=name), 200)
    assert schedule(199) <= 0.02 * (1 + 1e-9)
    assert schedule(200) == schedule(1000) <= schedule(199)


def test_values_after_a_warmup_are_those_of_the_formulas() -> None:
    shape: dict[str, Any] = {"warmup_fraction": 0.4}  # 4 steps up, 6 down
    rise = [0.5, 1.0, 1.5, 2.0]
    assert rates(10, schedule="constant", **shape) == [*rise, *[2.0] * 7]
    assert rates(10, schedule="cosine", **shape)[4:] == pytest.approx(
        [2.0, 1 + math.sqrt(3) / 2, 1.5, 1.0, 0.5, 1 - math.sqrt(3) / 2, 0.0]
    )
    assert rates(10, schedule="linear", **shape) == pytest.approx([*rise, 2, 10 / 6, 8 / 6, 1, 4 / 6, 2 / 6, 0])
    assert rates(10, schedule="polynomial", schedule_power=2.0, **shape)[4:] == pytest.approx(
        [2 * (left / 6) ** 2 for left in (6, 5, 4, 3, 2, 1, 0)]
    )
    assert rates(10, schedule="step", schedule_drops=2, schedule_factor=0.1, **shape)[4:] == pytest.approx(
        [2.0, 2.0, 0.2, 0.2, 0.02, 0.02, 0.02]
    )


@pytest.mark.parametrize(("steps", "drops"), [(9, 2), (90, 2), (7, 6), (49, 6)])
def test_drops_part_the_steps_equally(steps: int, drops: int) -> None:
    values = [stepwise(step, steps, drops=drops, factor=0.5) for step in range(steps)]
    assert [values.count(0.5**drop) for drop in range(drops + 1)] == [steps // (drops + 1)] * (drops + 1)


@pytest.mark.parametrize(("total", "rising"), [(20, 6), (10, 3), (100, 25)])
def test_one_cycle_equals_torchs(total: int, rising: int) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1.0, total_steps=total, pct_start=rising / total, cycle_momentum=False
    )
    expected = []
    for _ in range(total):
        expected.append(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step() if len(expected) < total else None
    assert [one_cycle(step, total, rising) for step in range(total)] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_first_and_last_steps_of_one_cycle() -> None:
    assert one_cycle(0, 10, 4) == pytest.approx(1 / 25)
    assert one_cycle(3, 10, 4) == one_cycle(0, 10, 0) == one_cycle(0, 10, 1) == one_cycle(0, 1, 0) == 1.0
    assert one_cycle(9, 10, 4) == one_cycle(30, 10, 4) == pytest.approx(4e-6)


def test_a_line_is_a_polynomial_of_power_one_and_the_cosine_crosses_it_halfway() -> None:
    assert [linear(step, 8) for step in range(9)] == [polynomial(step, 8, power=1.0) for step in range(9)]
    assert cosine(4, 8) == pytest.approx(linear(4, 8))


@given(st.integers(1, 50), st.data())
def test_a_rise_reaches_into_every_part_of_a_training(total: int, data: st.DataObject) -> None:
    warmup = data.draw(st.integers(0, total))
    step = data.draw(st.integers(0, 2 * total))
    assert 0.0 <= with_warmup(cosine, step, total, warmup) <= 1.0
    assert 0.0 < one_cycle(step, total, warmup) <= 1.0


@pytest.mark.parametrize("arguments", [(-1, 5, 0), (0, 0, 0), (0, 5, 6), (0, 5, -1)])
def test_schedules_refuse_impossible_numbers(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="need step >= 0"):
        with_warmup(cosine, *arguments)
    with pytest.raises(ValueError, match="need step >= 0"):
        one_cycle(*arguments)


@pytest.mark.parametrize(("how", "expected"), [("none", 0.1), ("linear", 0.4), ("sqrt", 0.2)])
def test_peak_follows_the_batch_size(how: LearningRateScaling, expected: float) -> None:
    assert scaled_learning_rate(0.1, how, batch_size=256, reference_batch_size=64) == pytest.approx(expected)
    assert scaled_learning_rate(0.1, how, batch_size=64, reference_batch_size=64) == 0.1
    training = TrainConfig(
        learning_rate=0.1, learning_rate_scaling=how, batch_size=256, reference_batch_size=64, warmup_fraction=0.0
    )
    assert build_schedule(training, 10)(0) == pytest.approx(expected)
