from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from automl import api
from automl.events import Event
from automl.observer import Observer
from automl.session import SearchOutcome

Search = Callable[..., SearchOutcome]


class Recorder(Observer):
    """Keeps the events of a search."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def notify(self, event: Event) -> None:
        self.events.append(event)


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/studies.db"


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def toy_search(storage: str) -> Search:
    """Search the toy space in this process; every field can be given."""

    def search(**fields: Any) -> SearchOutcome:
        toy: dict[str, Any] = {
            "space": "tests.helpers.toy",
            "storage": storage,
            "study": "toy",
            "metric": "loss",
            "epochs": 4,
            "sampler": "random",
            "pruner": "none",
            "executor": "inline",
        }
        return api.search(**{**toy, **fields})

    return search
