import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from search_spaces import InvalidSpaceError, UnknownSearchSpaceError, catalog, discovery
from search_spaces.catalog import SpaceModule
from search_spaces.errors import SpaceNameClashError
from tests.contracts.space_contract import SpaceContract


class TestEveryCatalogueSpace(SpaceContract):
    @pytest.fixture(params=catalog.available())
    def module(self, request: pytest.FixtureRequest) -> SpaceModule:
        return catalog.load(request.param)

    def test_space_has_the_name_of_its_file(self, module: SpaceModule) -> None:
        assert module.SPACE.name in catalog.available()
        assert catalog.load(module.SPACE.name) is module

    def test_space_says_what_it_is(self, module: SpaceModule) -> None:
        assert module.SPACE.description.endswith(".")


def test_load_misspelt_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownSearchSpaceError) as caught:
        catalog.load("nas_smal")
    names = ", ".join(catalog.available())
    expected = f"no search space 'nas_smal'; did you mean 'nas_small'? available: {names}"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "reference", ["", ".", "no_such.module", "search_spaces.no_such", "search_spaces/x.py", "os.path.x"]
)
def test_load_missing_module_is_unknown(reference: str) -> None:
    with pytest.raises(UnknownSearchSpaceError):
        catalog.load(reference)


def test_load_dotted_path_imports_a_foreign_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_space(tmp_path / "their_project" / "spaces" / "tiny.py")
    monkeypatch.syspath_prepend(tmp_path)
    module = catalog.load("their_project.spaces.tiny")
    assert module.SPACE.names() == ("learning_rate",)
    assert catalog.graph(module, {"learning_rate": 0.1}) is None


def test_load_module_without_space_names_everything_that_lacks() -> None:
    with pytest.raises(InvalidSpaceError, match=r"SPACE = SearchSpace.*build_model\("):
        catalog.load("search_spaces.ranges")


def test_load_module_that_fails_to_import_shows_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_package").mkdir()
    (tmp_path / "their_package" / "broken.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(discovery.PluginImportError, match=r"their_package\.broken.*no_such_package"):
        catalog.load("their_package.broken")


def test_available_lists_installed_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, {"their_space": "search_spaces.catalog.nas_small"})
    assert catalog.available() == tuple(sorted((*discovery.module_names("search_spaces.catalog"), "their_space")))
    assert catalog.load("their_space").SPACE.name == "nas_small"


def test_load_entry_point_that_is_no_module_names_what_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, {"their_space": "search_spaces.catalog.nas_small:SPACE"})
    with pytest.raises(InvalidSpaceError, match=r"SearchSpace\('nas_small'.*must define SPACE"):
        catalog.load("their_space")


def test_available_entry_point_under_a_catalogue_name_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, {"nas_small": "their_project.spaces"})
    with pytest.raises(SpaceNameClashError, match=r"nas_small \(their_project\.spaces\)"):
        catalog.available()


def test_entry_points_same_name_twice_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for project in ("alpha", "beta"):
        _write_distribution(tmp_path / project, project)
        monkeypatch.syspath_prepend(tmp_path / project)
    with pytest.raises(SpaceNameClashError, match=r"alpha\.spaces and beta\.spaces"):
        catalog.available()


def test_entry_points_are_read_from_installed_distributions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write_distribution(tmp_path, "alpha")
    monkeypatch.syspath_prepend(tmp_path)
    found = discovery.entry_points(catalog.ENTRY_POINT_GROUP)
    assert {name: point.value for name, point in found.items()} == {"shared_name": "alpha.spaces"}


def test_module_names_leaves_out_private_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "their_plugins"
    package.mkdir()
    for name in ("__init__", "beta", "alpha", "_private"):
        (package / f"{name}.py").write_text("raise_on_import = 1 / 0\n" if name != "__init__" else "")
    monkeypatch.syspath_prepend(tmp_path)
    assert discovery.module_names("their_plugins") == ("alpha", "beta")


def test_module_names_missing_package_raises() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_plugins"):
        discovery.module_names("no_such_plugins")


def test_loading_spaces_imports_neither_torch_nor_numpy() -> None:
    program = (
        "import sys; from search_spaces import catalog\n"
        "for name in catalog.available(): catalog.load(name).SPACE.to_json()\n"
        "print(sorted({'torch', 'ray', 'numpy', 'optuna', 'plotly'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def _install(monkeypatch: pytest.MonkeyPatch, offers: dict[str, str]) -> None:
    points = {name: EntryPoint(name, value, catalog.ENTRY_POINT_GROUP) for name, value in offers.items()}

    def installed(group: str) -> Mapping[str, EntryPoint]:
        assert group == "automl.search_spaces"
        return points

    monkeypatch.setattr(catalog, "entry_points", installed)


def _write_space(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(
        "from search_spaces import Float, SearchSpace\n"
        "SPACE = SearchSpace('tiny', {'learning_rate': Float(low=0.001, high=0.1, log=True)})\n"
        "def build_model(configuration, input_shape, num_classes):\n"
        "    raise NotImplementedError\n"
    )


def _write_distribution(folder: Path, project: str) -> None:
    metadata = folder / f"{project}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[automl.search_spaces]\nshared_name = {project}.spaces\n")
