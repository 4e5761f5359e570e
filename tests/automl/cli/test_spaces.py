"""`automl spaces NAME`: a space in words, also one whose code fails or prints."""

import json

import pytest

from tests.automl.cli.conftest import Shell

OWN = """
from search_spaces import Integer, SearchSpace

SPACE = SearchSpace("own", {"width": Integer(low=1, high=4, role="architecture")}, HOOKS)


def build_model(configuration, input_shape, num_classes):
    from torch import nn
    print("PRINTED")
    BUILD
    return nn.Sequential(nn.Flatten(), nn.Linear(input_shape[0] * input_shape[1] * input_shape[2], num_classes))
"""


def write(shell: Shell, *, hooks: str = "", build: str = "pass") -> None:
    (shell.folder / "own.py").write_text(OWN.replace("HOOKS", hooks).replace("BUILD", build))


def test_what_a_network_prints_is_not_in_the_json(shell: Shell) -> None:
    write(shell)
    ended = shell("spaces", "own.py", "--json")
    assert ended.code == 0, ended
    assert json.loads(ended.out)["example"]["parameters"] == 30730
    assert "PRINTED" in ended.err


@pytest.mark.parametrize(
    ("hooks", "build", "text"),
    [
        ("", "raise SystemExit(0)", "SystemExit: it called sys.exit(0)"),
        ("refuse=lambda found: found['zz']", "pass", "'zz'"),
        ("refuse=lambda found: 'not today'", "pass", "not today"),
    ],
    ids=["exit", "faulty refuse", "all refused"],
)
def test_parameters_are_shown_where_no_network_can_be(shell: Shell, hooks: str, build: str, text: str) -> None:
    write(shell, hooks=hooks, build=build)
    ended = shell("spaces", "own.py")
    assert ended.code == 0, ended
    assert "width      architecture" in ended.out
    assert "can be shown: " in ended.out and text in ended.out


def test_fault_of_canonical_is_told(shell: Shell) -> None:
    write(shell, hooks="canonical=lambda found: found['zz']")
    ended = shell("spaces", "own.py")
    assert ended.code == 2
    assert "different networks cannot be counted: " in ended.err and "'zz'" in ended.err


def test_published_number_of_cells_stands_beside_that_of_networks(shell: Shell) -> None:
    text = shell("spaces", "nas_bench_201").out
    assert "15,625 configurations, 6,466 different networks, 5,260 exactly different; task" in text
    facts = json.loads(shell("spaces", "nas_bench_201", "--json").out)
    assert (facts["size"], facts["different"], facts["exactly_different"]) == (15625, 6466, 5260)
    assert all(name.isidentifier() for name in facts)


def test_space_of_parameters_alone_has_no_task(shell: Shell) -> None:
    (shell.folder / "plain.yaml").write_text("parameters:\n  rate: {low: 0.1, high: 1.0}\n")
    lines = shell("spaces", "plain.yaml").out.splitlines()
    assert lines[0] == "plain"
    assert (
        lines[-1] == "infinitely many configurations; it builds no network: it is searched with --script or --trainer"
    )
