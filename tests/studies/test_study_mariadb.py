import pytest

from tests.contracts.study_contract import StudyContract


@pytest.mark.mysql
class TestStudyOnMariadb(StudyContract):
    @pytest.fixture
    def url(self, mariadb_url: str) -> str:
        return mariadb_url
