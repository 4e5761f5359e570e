import pytest

from automl.registry import available
from tests.contracts.pruner_contract import PrunerContract

OPTIONS = {"threshold": {"lower": -100.0, "upper": 100.0}}
"""What has to be given."""


@pytest.mark.parametrize("name", available("pruner"), scope="class")
class TestEveryPruner(PrunerContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name, self.options = name, OPTIONS.get(name, {})
