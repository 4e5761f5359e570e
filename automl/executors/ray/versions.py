"""Whether a worker's machine has the packages that the driver has: what they exchange must mean the same to both."""

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

__all__ = ["installed_version", "mismatch", "own_versions"]

_PACKAGES = ("automl", "torch", "optuna")
_MISSING = "missing"


def own_versions() -> Mapping[str, str]:
    """Versions of Python (major and minor) and of the packages that a trial depends on, as installed here."""
    return {
        "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        **{name: installed_version(name) or _MISSING for name in _PACKAGES},
    }


def mismatch(driver: Mapping[str, str], worker: Mapping[str, str], host: str) -> str | None:
    """Why a worker's machine cannot serve a driver, with what to do; None: it can.

    The build of torch (`+cpu`, `+cu130`) may differ.
    """
    differing = [
        f"{name} {worker.get(name, _MISSING)} (the driver: {wanted})"
        for name, wanted in driver.items()
        if _release(worker.get(name, _MISSING)) != _release(wanted)
    ]
    if not differing:
        return None
    return f"machine {host} has {', '.join(differing)}; install the driver's versions there"


def installed_version(package: str) -> str | None:
    """The version of a package, as installed here; None: it is not."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _release(name: str) -> str:
    return name.partition("+")[0]
