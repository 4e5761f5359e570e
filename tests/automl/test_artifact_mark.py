"""Two databases with a study of one name never use one folder; a study that is moved keeps its own."""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path

import optuna
import pytest
from sqlalchemy import update

from automl import api, session
from automl.artifact_mark import check_mark, is_marked, set_mark
from automl.artifacts import Artifacts
from automl.cli.report import report
from automl.errors import InvalidSpecError
from studies.errors import StudyNotFoundError
from studies.schema.tables import automl_studies
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.automl.cli.conftest import TOY
from tests.automl.conftest import Search
from tests.helpers.commands import environment_of
from tests.helpers.searches import ForkedSearch
from tests.helpers.stores import names_in, store_url

__all__ = ["store_url"]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def study_in(file: Path, name: str = "toy") -> Study:
    return Storage(f"sqlite:///{file}").create_study(name, direction="minimize")


def forget_token(study: Study) -> Study:
    """The study as an older form of the tables holds it."""
    with Storage(study.storage_url) as storage, storage.engine.begin() as connection:
        connection.execute(update(automl_studies).where(automl_studies.c.study_id == study.id).values(token=None))
    return Storage(study.storage_url).open_study(study.name)


def test_token_is_the_studys_own_and_stays(tmp_path: Path) -> None:
    one, other = study_in(tmp_path / "one.db"), study_in(tmp_path / "other.db")
    assert one.token and other.token and one.token != other.token
    assert study_in(tmp_path / "one.db").token == one.token
    assert forget_token(one).token is None


def test_mark_lets_its_own_study_in_and_no_other_in_a_folder(tmp_path: Path) -> None:
    check_only_its_own_study_is_let_in(Artifacts(root=str(tmp_path / "files"), study="toy"), tmp_path)


def test_mark_lets_its_own_study_in_and_no_other_in_a_store(tmp_path: Path, store_url: str) -> None:
    check_only_its_own_study_is_let_in(Artifacts(root=store_url, study="toy"), tmp_path)


def check_only_its_own_study_is_let_in(artifacts: Artifacts, tmp_path: Path) -> None:
    one, other = study_in(tmp_path / "one.db"), study_in(tmp_path / "other.db")
    assert not is_marked(artifacts)
    check_mark(artifacts, None)
    for _ in range(2):
        set_mark(artifacts, one)
        assert is_marked(artifacts)
    for stranger in (None, other):
        with pytest.raises(InvalidSpecError, match=r"/toy holds the files of a study 'toy' of another database; give "):
            check_mark(artifacts, stranger)
    with pytest.raises(InvalidSpecError, match="of another database"):
        set_mark(artifacts, other)
    check_mark(artifacts, one)


def test_study_without_a_token_is_not_checked_and_leaves_no_mark(tmp_path: Path) -> None:
    artifacts = Artifacts(root=str(tmp_path / "files"), study="toy")
    old = forget_token(study_in(tmp_path / "old.db"))
    set_mark(artifacts, old)
    assert not is_marked(artifacts)
    set_mark(artifacts, study_in(tmp_path / "new.db"))
    check_mark(artifacts, old)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff"])
def test_file_that_is_no_mark_is_refused_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    artifacts = Artifacts(root=str(tmp_path), study="toy")
    (tmp_path / "toy").mkdir()
    Path(artifacts.mark).write_bytes(content)
    with pytest.raises(InvalidSpecError, match=r"toy/study\.json does not tell whose files lie beside it; remove it"):
        check_mark(artifacts, study_in(tmp_path / "one.db"))


def test_place_that_takes_no_mark_is_named(tmp_path: Path) -> None:
    (tmp_path / "toy").write_bytes(b"a file in the folder's place")
    study = study_in(tmp_path / "one.db")
    for artifacts in (Artifacts(root=str(tmp_path), study="toy"), Artifacts(root="refusing://bucket", study="toy")):
        with pytest.raises(InvalidSpecError, match=rf"artifacts: cannot (read|write) {artifacts.mark}: "):
            set_mark(artifacts, study)


def test_second_database_is_refused_and_the_firsts_files_stay(toy_search: Search, tmp_path: Path) -> None:
    files = tmp_path / "files"
    first = toy_search(trials=3, artifacts=str(files))
    assert json.loads((files / "toy" / "study.json").read_bytes()) == {"study": "toy", "token": first.study.token}
    before, other = contents(files), f"sqlite:///{tmp_path}/other.db"
    with pytest.raises(InvalidSpecError, match="--study another name") as raised:
        toy_search(trials=3, artifacts=str(files), storage=other)
    assert raised.value.exit_code == 2
    with pytest.raises(StudyNotFoundError):
        Storage(other).open_study("toy")
    assert not (tmp_path / "other.db").exists()
    assert contents(files) == before
    assert toy_search(trials=3, artifacts=str(files), storage=other, study="another").exit_code == 0
    assert {name: content for name, content in contents(files).items() if name.startswith("toy/")} == before
    assert toy_search(trials=5, artifacts=str(files)).exit_code == 0


def test_finished_study_does_not_replace_the_report_of_another(toy_search: Search, tmp_path: Path) -> None:
    files = tmp_path / "files"
    toy_search(trials=1, artifacts=str(files))
    before, other = contents(files), f"sqlite:///{tmp_path}/other.db"
    toy_search(trials=1, artifacts=str(tmp_path / "its own"), storage=other)
    with pytest.raises(InvalidSpecError, match="of another database"):
        toy_search(trials=1, artifacts=str(files), storage=other)
    with pytest.raises(InvalidSpecError, match="of another database"):
        report("toy", storage=other, artifacts=str(files))
    assert contents(files) == before
    assert report("toy", storage=other, artifacts=str(files), output=tmp_path / "page.html") == 0


def test_second_database_is_refused_in_a_store(toy_search: Search, store_url: str, tmp_path: Path) -> None:
    toy_search(trials=1, artifacts=store_url)
    before = names_in(store_url)
    assert "toy/study.json" in before
    with pytest.raises(InvalidSpecError, match=f"{store_url}/toy holds the files of a study 'toy' of another database"):
        toy_search(trials=1, artifacts=store_url, storage=f"sqlite:///{tmp_path}/other.db")
    assert names_in(store_url) == before
    assert toy_search(trials=2, artifacts=store_url).exit_code == 0


def test_moved_database_and_files_go_on(toy_search: Search, tmp_path: Path) -> None:
    home, moved = tmp_path / "home", tmp_path / "moved"
    toy_search(trials=2, storage=f"sqlite:///{home}/studies.db")
    shutil.move(home, moved)
    second = toy_search(trials=4, storage=f"sqlite:///{moved}/studies.db")
    assert [trial.state for trial in second.study.trials()] == [TrialState.COMPLETE] * 4
    assert second.report is not None and Path(second.report).is_relative_to(moved)


def test_study_of_plain_optuna_gets_a_mark_with_its_token(toy_search: Search, storage: str, tmp_path: Path) -> None:
    optuna.create_study(study_name="toy", storage=storage, direction="minimize")
    toy_search(trials=1)
    assert (tmp_path / "artifacts" / "toy" / "study.json").is_file()
    assert api.resume("toy", storage=storage, trials=2).exit_code == 0


def test_study_that_another_process_makes_meanwhile_is_joined(
    toy_search: Search, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first look into the database and the look into the folder another process makes both."""
    artifacts = Artifacts(root=str(tmp_path / "artifacts"), study="toy")
    looks: list[Study | None] = []
    existing = session._existing

    def make_both_after_the_look(opened: Storage, name: str) -> Study | None:
        found = existing(opened, name)
        looks.append(found)
        if len(looks) == 2:
            set_mark(artifacts, Storage(storage).create_study("toy", direction="minimize"))
        return found

    monkeypatch.setattr(session, "_existing", make_both_after_the_look)
    assert toy_search(trials=2).exit_code == 0
    assert [found is None for found in looks] == [True, True, False]


def test_processes_that_start_at_once_share_a_folder(tmp_path: Path) -> None:
    arguments = (
        "search", "--space", "tests.helpers.toy", *TOY, "--trials", 6, "--study", "shared",
        "--storage", f"sqlite:///{tmp_path}/studies.db", "--artifacts", f"file://{tmp_path}/files", "--quiet",
    )  # fmt: skip
    with ExitStack() as stack:
        commands = [
            stack.enter_context(ForkedSearch(*arguments, folder=tmp_path, environment=environment_of(tmp_path)))
            for _ in range(3)
        ]
        ends = [command.ended() for command in commands]
    assert [ended.code for ended in ends] == [0, 0, 0], "\n".join(map(str, ends))
    study = Storage(f"sqlite:///{tmp_path}/studies.db").open_study("shared")
    mark = json.loads((tmp_path / "files" / "shared" / "study.json").read_bytes())
    assert mark == {"study": "shared", "token": study.token}
