import pickle
import sys
from pathlib import Path

import pytest

from search_spaces import InvalidSpaceError, UnknownSearchSpaceError, catalog
from search_spaces.discovery import PluginImportError
from search_spaces.own_files import import_file

SPACE = "from search_spaces import Float, SearchSpace\nSPACE = SearchSpace('own', {'x': Float(low=0, high=1)})\n"


def test_space_may_be_a_file_with_or_without_a_network(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(SPACE)
    assert catalog.load(str(file), has_networks=False).SPACE.names() == ("x",)
    with pytest.raises(InvalidSpaceError, match="must define build_model"):
        catalog.load(str(file))


def test_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownSearchSpaceError, match="there is no such file"):
        catalog.load(str(tmp_path / "none.py"))


def test_file_is_imported_once_until_its_text_changes(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("class Thing:\n    number = 1\n")
    first = import_file(file)
    assert import_file(file) is first
    assert type(pickle.loads(pickle.dumps(first.Thing()))) is first.Thing
    file.write_text("class Thing:\n    number = 2\n")
    assert import_file(file).Thing.number == 2


def test_file_may_import_what_lies_beside_it_and_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "beside_the_file.py").write_text("NUMBER = 7\n")
    (tmp_path / "json.py").write_text("raise AssertionError('the standard one was meant')\n")
    file = tmp_path / "own.py"
    file.write_text("import json\nfrom beside_the_file import NUMBER\n")
    assert import_file(file).NUMBER == 7
    sys.path.remove(str(tmp_path))


@pytest.mark.parametrize(
    "text, words",
    [
        ("x = 1\n1 / 0\n", r"own\.py, line 2: ZeroDivisionError"),
        ("def f(:\n", r"own\.py, line 1: SyntaxError"),
        ("import sys\nsys.exit('no')\n", r"own\.py, line 2: SystemExit: it called sys\.exit\('no'\)"),
    ],
)
def test_file_that_fails_is_told_with_its_line_and_not_kept(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "own.py"
    file.write_text(text)
    for _ in range(2):
        with pytest.raises(PluginImportError, match=words):
            import_file(file)
