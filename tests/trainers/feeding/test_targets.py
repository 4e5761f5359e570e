import re

import pytest
import torch

from trainers.errors import BadDataError
from trainers.feeding.targets import TargetCheck

CLASSES = TargetCheck(place="own.py: train", classes=3)
NUMBERS = TargetCheck(place="own.py: test", classes=None)


@pytest.mark.parametrize(
    "check, given, expected",
    [
        (CLASSES, torch.tensor([0, 2, 1]), torch.tensor([0, 2, 1])),
        (CLASSES, torch.tensor([0.0, 2.0]), torch.tensor([0, 2])),
        (CLASSES, torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)),
        (NUMBERS, torch.tensor([1, -2]), torch.tensor([1.0, -2.0])),
    ],
)
def test_right_targets_come_as_losses_take_them(
    check: TargetCheck, given: torch.Tensor, expected: torch.Tensor
) -> None:
    found = check.checked(given, lambda: [7, 8, 9])
    assert found.dtype == expected.dtype and torch.equal(found, expected)


@pytest.mark.parametrize(
    "check, given, words",
    [
        (
            CLASSES,
            torch.tensor([0, -100, 2]),
            "own.py: train item 8 has the target -100; allowed: whole numbers from 0",
        ),
        (CLASSES, torch.tensor([3, 0, -1]), "item 7 has the target 3, item 9 has the target -1; allowed: "),
        (CLASSES, torch.tensor([0.0, 1.5, 2.0]), "item 8 has the target 1.5"),
        (CLASSES, torch.tensor([0.0, 1.0, float("nan")]), "item 9 has the target nan"),
        (NUMBERS, torch.tensor([[0.5], [float("inf")], [1.0]]), "own.py: test item 8 has the target inf; allowed: fin"),
    ],
    ids=["ignored by torch", "two", "half", "nan", "infinite"],
)
def test_wrong_target_is_told_with_its_item(check: TargetCheck, given: torch.Tensor, words: str) -> None:
    with pytest.raises(BadDataError, match=re.escape(words)):
        check.checked(given, lambda: [7, 8, 9])


def test_message_of_many_wrong_targets_is_short() -> None:
    with pytest.raises(
        BadDataError, match=r"item 4 has the target 9 \(and 95 more\); allowed: whole numbers from 0 to 2"
    ):
        CLASSES.checked(torch.full((100,), 9), lambda: range(100))
