"""The only place that reads or sets environment variables and the import path."""

import os
import secrets
import sys
from pathlib import Path

__all__ = [
    "default_artifacts",
    "default_storage",
    "known_ray_address",
    "make_working_folder_importable",
    "prepare_joined_cluster",
    "prepare_private_cluster",
    "put_own_packages_first",
    "ray_temp_folder",
    "state_folder",
    "visible_devices",
]

PACKAGES = ("automl", "search_spaces", "studies", "trainers")
_PACKAGE_ROOT = Path(__file__).resolve().parent.parent


def default_storage() -> str:
    """`AUTOML_STORAGE` where it is set, otherwise an SQLite file below the working folder."""
    return os.environ.get("AUTOML_STORAGE", "sqlite:///automl-runs/studies.db")


def default_artifacts() -> str | None:
    """`AUTOML_ARTIFACTS` where it is set: the root of checkpoints and reports for all studies."""
    return os.environ.get("AUTOML_ARTIFACTS")


def state_folder() -> Path:
    """Where this user's small remembered facts live (XDG base directory specification)."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "automl"


def ray_temp_folder() -> Path:
    """Where Ray's clusters on this machine keep their sessions, by Ray's own rule."""
    parent = os.environ.get("RAY_TMPDIR")
    if parent is None and sys.platform.startswith("linux"):
        parent = os.environ.get("TMPDIR")
    return Path("/tmp" if parent is None else parent) / "ray"


def visible_devices() -> str | None:
    """`CUDA_VISIBLE_DEVICES`: the GPUs that programs started here may see; None: all."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def put_own_packages_first() -> None:
    """Let `trainers` and `studies` mean ours, by putting our folder just before the first that has others.

    A person's project often has folders of these names, and both `python -m` and Ray put the working folder in front
    of the installed packages.
    """
    root = str(_PACKAGE_ROOT)
    foreign = (
        index
        for index, entry in enumerate(sys.path)
        if entry != root and any(Path(entry or os.curdir, name).is_dir() for name in PACKAGES)
    )
    first = next(foreign, None)
    if first is not None and root not in sys.path[:first]:
        sys.path.insert(first, root)


def make_working_folder_importable() -> None:
    """Let a person's own search space or trainer be named by its import path, after everything installed."""
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.append(folder)


def known_ray_address() -> str | None:
    """The cluster that `auto` means on this machine: `RAY_ADDRESS`, or what the last `ray start` has noted."""
    noted = ray_temp_folder() / "ray_current_cluster"
    address = os.environ.get("RAY_ADDRESS")
    if not address and noted.is_file():
        address = noted.read_text(encoding="utf-8").strip()
    return address or None


def prepare_private_cluster() -> None:
    """Set what Ray reads when it is imported to start a cluster of our own.

    Only this process and its children hold the token, so that nobody else on the machine can run code through the
    cluster. A person's own settings win, and so does a program that has loaded Ray already.
    """
    if "ray" in sys.modules:
        return
    _quieten_ray()
    if "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def prepare_joined_cluster() -> None:
    """Set what Ray reads when it is imported to join a cluster of somebody's.

    A token that is at hand is used, as Ray itself does only for clusters that it has found by itself. A person's own
    settings win, and so does a program that has loaded Ray already.
    """
    if "ray" in sys.modules:
        return
    _quieten_ray()
    file = Path.home() / ".ray" / "auth_token"
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH") or file.is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")


def _quieten_ray() -> None:
    """Nothing is sent home, Ray does not print errors that we look at, and it takes leave of a dead head soon."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
    os.environ.setdefault("RAY_task_events_shutdown_flush_timeout_ms", "500")  # it is 5 s otherwise
