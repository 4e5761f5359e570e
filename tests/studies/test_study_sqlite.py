from pathlib import Path

import pytest

from tests.contracts.study_contract import StudyContract


class TestStudyOnSqlite(StudyContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path / 'folder' / 'studies.db'}"
