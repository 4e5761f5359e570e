"""The import direction is a law: each package may import only what lies below it, and heavy libraries stay at home."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_IMPORT = {
    "search_spaces": set[str](),
    "trainers": {"search_spaces"},
    "studies": {"search_spaces"},
    "automl": {"search_spaces", "trainers", "studies"},
}
HOMES = {
    "ray": {"automl/executors/ray", "automl/integrations/ray_tune"},
    "optuna.storages": {"studies/storage.py", "studies/optuna_in_memory.py", "studies/schema"},
    "torch": {"search_spaces", "trainers", "automl/executors/ray/rank.py"},
}


def modules(package: str) -> Iterator[Path]:
    return (ROOT / package).rglob("*.py")


def imports(file: Path) -> Iterator[tuple[str, bool]]:
    """Name of each imported module, and whether it is imported when the file is (not in a function, not for types)."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    lazy = {
        id(node)
        for scope in ast.walk(tree)
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(scope, ast.If) and "TYPE_CHECKING" in ast.dump(scope.test))
        for node in ast.walk(scope)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in lazy
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} uses a relative import"
            yield node.module or "", id(node) not in lazy
            for alias in node.names:
                yield f"{node.module}.{alias.name}", id(node) not in lazy


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_package_imports_only_what_lies_below_it(package: str) -> None:
    forbidden = set(MAY_IMPORT) - MAY_IMPORT[package] - {package} | {"tests"}
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules(package)
        for name, _ in imports(file)
        if name.partition(".")[0] in forbidden
    ]
    assert not wrong


@pytest.mark.parametrize("library", HOMES)
def test_library_is_imported_in_its_home_only(library: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for package in MAY_IMPORT
        for file in modules(package)
        for name, _ in imports(file)
        if (name == library or name.startswith(f"{library}."))
        and not any(str(file.relative_to(ROOT)).startswith(home) for home in HOMES[library])
    ]
    assert not wrong


def test_no_cycle_of_imports() -> None:
    files = {".".join(f.relative_to(ROOT).with_suffix("").parts): f for p in MAY_IMPORT for f in modules(p)}
    names = {name.removesuffix(".__init__"): file for name, file in files.items()}
    edges = {
        name: {target for target, eager in imports(file) if eager and target in names} - {name}
        for name, file in names.items()
    }
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, f"cycle: {' -> '.join([*path[path.index(name) :], name])}"
        if name in done:
            return
        for target in edges[name]:
            visit(target, (*path, name))
        done.add(name)

    for name in names:
        visit(name, ())


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    code = f"import sys, {package}; print(*sorted({{'torch', 'ray', 'optuna', 'plotly', 'pandas'}} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert output.strip() == ""


def test_listing_and_planning_loads_neither_torch_nor_ray() -> None:
    code = (
        "import sys; from automl.spec import SearchSpec; SearchSpec.from_mapping({'space': 'nas_small'}, 'test'); "
        "print(*sorted({'torch', 'ray'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert output.strip() == ""
