import pytest

from automl.registry import available
from tests.contracts.sampler_contract import SamplerContract


@pytest.mark.parametrize("name", available("sampler"), scope="class")
class TestEverySampler(SamplerContract):
    @pytest.fixture(autouse=True)
    def _named(self, name: str) -> None:
        self.name = name
        self.long_search = 25 if name == "gp" else 100
