"""What the documentation says exists: links, files, commands with their flags, make targets and names of the API."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import automl
from automl.cli.application import VERBS, application
from automl.spec import SearchSpec

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Language and text of each fenced block."""
    yield from re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each line that calls `automl`, without comments."""
    for language, text in blocks(page):
        if language in ("", "sh", "bash", "shell", "console"):
            for line in text.splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                if words and words[0] == "automl":
                    yield words[1:]


def test_there_are_pages_with_commands() -> None:
    assert ROOT / "README.md" in PAGES
    assert any(commands(ROOT / "README.md"))


@each_page
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    files = [link.partition("#")[0] for link in links if "://" not in link and not link.startswith("#")]
    missing = [file for file in files if not (page.parent / file).exists()]
    assert not missing


@each_page
def test_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(r"`([\w.-]+/[\w./-]*)`", page.read_text())
    missing = [name for name in named if name.partition("/")[0] in FOLDERS and not (ROOT / name).exists()]
    assert not missing


@each_page
def test_commands_have_verbs_and_flags_that_exist(page: Path) -> None:
    for words in commands(page):
        verb, *arguments = words
        assert verb in VERBS, words
        group = typer.main.get_group(application([verb]))
        # Raises for an unknown flag, a missing value and a surplus word; the verb itself is not run.
        group.commands[verb].make_context(verb, arguments)


@each_page
def test_make_targets_exist(page: Path) -> None:
    wanted = set(re.findall(r"(?:^|`)make ([a-z-]+)(?:$|`)", page.read_text(), flags=re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert wanted <= targets


@each_page
def test_python_examples_use_names_that_exist(page: Path) -> None:
    for language, text in blocks(page):
        if language != "python":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "automl":
                assert node.attr in automl.__all__
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "automl.search":
                fields = {keyword.arg for keyword in node.keywords}
                assert fields <= set(SearchSpec.model_fields)


def test_every_verb_is_in_the_readme() -> None:
    assert {words[0] for words in commands(ROOT / "README.md")} == set(VERBS)
