import pytest

from tests.contracts.study_contract import StudyContract


@pytest.mark.postgres
class TestStudyOnPostgres(StudyContract):
    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url
