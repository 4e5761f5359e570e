import pytest

from automl.registry import available
from tests.contracts.pruner_contract import PrunerContract
from trainers.reporting import Decision

OPTIONS = {"threshold": {"lower": -100.0, "upper": 100.0}}
"""What has to be given."""


@pytest.mark.parametrize("name", available("pruner"), scope="class")
class TestEveryPruner(PrunerContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name, self.options = name, OPTIONS.get(name, {})
        if name == "pasha":  # even the best goes no farther than it takes to know that it is
            self.best = (Decision.CONTINUE, Decision.PAUSE)
