from collections.abc import Iterator

import pytest

from automl.executors.inline import InlineExecutor
from tests.contracts.executor_contract import ExecutorContract
from tests.helpers.toy import ToyTrainer


class TestInlineExecutor(ExecutorContract):
    @pytest.fixture
    def executor(self) -> Iterator[InlineExecutor]:
        with InlineExecutor(ToyTrainer(), "digits") as executor:
            yield executor
