import pytest

from automl.registry import available
from tests.contracts.pruner_contract import PrunerContract


@pytest.mark.parametrize("name", available("pruner"), scope="class")
class TestEveryPruner(PrunerContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name
