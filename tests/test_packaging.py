"""The wheel holds the four packages and nothing else, and works where a person has packages of the same names."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

from automl import __version__
from tests.helpers.commands import REPOSITORY, Command, environment_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PACKAGES = ("automl", "search_spaces", "studies", "trainers")
NEEDED = (
    "studies/figures/page/page.css",
    "studies/figures/page/page.js",
    "studies/schema/script.py.mako",
    "studies/schema/versions/first_form.py",
)


def run(command: Sequence[str | Path], folder: Path, environment: dict[str, str] | None = None) -> str:
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, REPOSITORY], folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def files_of_the_tree() -> set[str]:
    files = (path for package in PACKAGES for path in (REPOSITORY / package).rglob("*"))
    return {str(file.relative_to(REPOSITORY)) for file in files if file.is_file() and "__pycache__" not in file.parts}


def test_wheel_holds_every_file_of_the_four_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == files_of_the_tree()
    assert names >= set(NEEDED)


def test_wheel_says_its_version_its_licence_and_its_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        own = {name.partition("/")[2]: name for name in archive.namelist() if ".dist-info/" in name}
        metadata = Parser().parsestr(archive.read(own["METADATA"]).decode())
        commands = archive.read(own["entry_points.txt"]).decode()
    assert (metadata["Name"], metadata["Version"]) == ("automl", __version__)
    assert "licenses/LICENSE" in own
    assert "automl = automl.cli:main" in commands


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """An environment with the wheel in it, and a working folder with packages of the same names that nobody may run."""

    python: Path
    program: Path
    project: Path
    environment: dict[str, str]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    run([sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--no-deps", wheel], folder)
    site = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip()
    # What the wheel depends on; a path that is added so has no say in further paths, such as that of this repository.
    Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    project = folder / "project"
    for package in ("trainers", "studies", "search_spaces"):
        (project / package).mkdir(parents=True)
        (project / package / "__init__.py").write_text(f"raise RuntimeError('the {package} of somebody else')\n")
    environment = {**environment_of(folder), "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    del environment["PYTHONPATH"]
    return Installed(python=python, program=python.parent / "automl", project=project, environment=environment)


def test_installed_package_is_the_one_that_is_imported(installed: Installed, tmp_path: Path) -> None:
    code = f"import {', '.join(PACKAGES)}; print(*(p.__file__ for p in ({', '.join(PACKAGES)})), sep='\\n')"
    files = run([installed.python, "-c", code], tmp_path, installed.environment).splitlines()
    assert len(files) == len(PACKAGES)
    assert all(Path(file).is_relative_to(installed.python.parents[1]) for file in files)


@pytest.mark.ray
def test_installed_program_searches_beside_packages_of_the_same_names(installed: Installed) -> None:
    search = ("search", "--space", "nas_small", "--trials", 2, "--epochs", 1)
    resume = ("resume", "nas_small-digits", "--trials", 3)
    module = (str(installed.python), "-m", "automl")
    for program, arguments in (((str(installed.program),), search), (module, resume)):
        with Command(
            *arguments, folder=installed.project, environment=installed.environment, program=program
        ) as command:
            ended = command.ended(timeout_s=120.0)
        assert ended.code == 0, ended
        assert "somebody else" not in ended.err
    assert "all 3 trials ended; 3 complete" in ended.out
