from pathlib import Path

import pytest

from tests.helpers.mariadb import mariadb_server, mariadb_url
from tests.helpers.postgres import postgres_server, postgres_url

__all__ = ["mariadb_server", "mariadb_url", "postgres_server", "postgres_url"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "studies.db"
