import sys

import pytest
import torch

from automl import __version__
from automl.executors.ray.versions import mismatch, own_versions

DRIVER = {"python": "3.11", "automl": "0.1.0", "torch": "2.13.0+cpu"}


def test_own_versions_are_those_that_are_imported() -> None:
    versions = own_versions()
    assert versions["python"] == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert versions["automl"] == __version__
    assert versions["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert mismatch(versions, versions, "here") is None


def test_another_build_of_torch_is_no_mismatch() -> None:
    assert mismatch(DRIVER, {**DRIVER, "torch": "2.13.0+cu130"}, "gpu1") is None


@pytest.mark.parametrize(
    "worker, words",
    [
        ({**DRIVER, "torch": "2.12.1+cpu"}, "torch 2.12.1+cpu (the driver: 2.13.0+cpu)"),
        ({**DRIVER, "python": "3.12"}, "python 3.12 (the driver: 3.11)"),
        ({"python": "3.11", "torch": "2.13.0"}, "automl missing (the driver: 0.1.0)"),
    ],
    ids=["torch", "python", "missing"],
)
def test_mismatch_names_the_machine_and_both_versions(worker: dict[str, str], words: str) -> None:
    assert mismatch(DRIVER, worker, "gpu1") == f"machine gpu1 has {words}; install the driver's versions there"


def test_mismatch_names_everything_at_once() -> None:
    reason = mismatch(DRIVER, {**DRIVER, "torch": "2.12.1", "automl": "0.0.9"}, "gpu1")
    assert reason is not None
    assert "automl 0.0.9" in reason
    assert "torch 2.12.1" in reason
