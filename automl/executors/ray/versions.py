"""Whether a worker's machine has the packages that the driver has: what they exchange must mean the same to both."""

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

__all__ = ["mismatch", "own_versions"]

_PACKAGES = ("automl", "torch", "optuna")


def own_versions() -> Mapping[str, str]:
    """Versions of Python (major and minor) and of the packages that a trial depends on, as installed here."""
    return {"python": f"{sys.version_info[0]}.{sys.version_info[1]}", **{name: _version(name) for name in _PACKAGES}}


def mismatch(driver: Mapping[str, str], worker: Mapping[str, str], host: str) -> str | None:
    """Why a worker's machine cannot serve a driver, with what to do; None: it can.

    The build of torch (`+cpu`, `+cu130`) may differ.
    """
    differing = [
        f"{name} {worker.get(name, 'missing')} (the driver: {wanted})"
        for name, wanted in driver.items()
        if _release(worker.get(name, "missing")) != _release(wanted)
    ]
    if not differing:
        return None
    return f"machine {host} has {', '.join(differing)}; install the driver's versions there"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _release(name: str) -> str:
    return name.partition("+")[0]
