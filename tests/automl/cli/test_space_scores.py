"""`automl spaces score`: random networks of a space, untrained, the most promising first."""

import json

from automl.cli.space_scores import _rank
from tests.automl.cli.conftest import Shell

BLOCKED = """
from search_spaces import Categorical, SearchSpace

SPACE = SearchSpace("blocked", {"width": Categorical(choices=(1, 2), role="architecture")}, refuse=lambda found: "no")


def build_model(configuration, input_shape, num_classes):
    raise AssertionError("never built")
"""


def test_networks_are_ranked_by_all_scores(shell: Shell) -> None:
    ended = shell("spaces", "score", "nas_small", "--configurations", 4, "--scores", "parameters,snip", "--json")
    assert ended.code == 0, ended
    rows = json.loads(ended.out)
    assert [set(row["scores"]) for row in rows] == [{"parameters", "snip"}] * 4
    assert [row["rank"] for row in rows] == sorted(row["rank"] for row in rows)
    assert sum(row["rank"] for row in rows) == 1 + 2 + 3 + 4
    by_size = sorted(rows, key=lambda row: -row["scores"]["parameters"])
    by_loss = sorted(rows, key=lambda row: -row["scores"]["snip"])
    assert [row["rank"] for row in rows] == [(by_size.index(row) + by_loss.index(row)) / 2 + 1 for row in rows]
    assert "learning_rate" in rows[0]["configuration"]
    assert not any(shell.folder.iterdir()), "nothing is stored"


def test_table_shows_scores_and_what_makes_the_architecture(shell: Shell) -> None:
    ended = shell("spaces", "score", "tabular_mlp", "--data", "wine", "--configurations", 2, "--scores", "synflow")
    assert ended.code == 0, ended
    head, *rows = ended.out.splitlines()
    assert head.split() == ["rank", "synflow", "network"]
    assert [row.split()[0] for row in rows] == ["1", "2"]
    assert all("dropout=" in row and "learning_rate" not in row for row in rows)


def test_every_mistake_is_told_at_once(shell: Shell) -> None:
    ended = shell("spaces", "score", "nas_small", "--data", "digit", "--scores", "synflo,naswot")
    assert (ended.code, ended.out) == (2, "")
    assert "2 mistakes" in ended.err
    assert "scores: no score 'synflo'; did you mean 'synflow'? available: gradient_norm, " in ended.err
    assert "did you mean 'digits'" in ended.err


def test_space_whose_networks_nobody_can_build_is_refused(shell: Shell) -> None:
    ended = shell("spaces", "score", "tests.helpers.toy")
    assert ended.code == 2
    assert "space: 'tests.helpers.toy' builds no networks that could be scored" in ended.err


def test_space_without_a_feasible_network_completes_nothing(shell: Shell) -> None:
    (shell.folder / "blocked.py").write_text(BLOCKED)
    ended = shell("spaces", "score", "blocked.py", "--configurations", 2)
    assert ended.code == 3
    assert "can be built for data 'digits': 2 of 2 networks" in ended.err
    assert "one reason: no; `automl spaces check" in ended.err


PARTLY = """
from search_spaces import Integer, SearchSpace

SPACE = SearchSpace("partly", {"width": Integer(low=1, high=4, role="architecture")})


def build_model(configuration, input_shape, num_classes):
    from torch import nn
    print("PRINTED")
    if configuration["width"] == 2:
        raise KeyError("width")
    if configuration["width"] == 3:
        raise SystemExit(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(input_shape[0] * input_shape[1] * input_shape[2], num_classes))
"""


def test_networks_that_cannot_be_built_are_left_out_and_told(shell: Shell) -> None:
    (shell.folder / "partly.py").write_text(PARTLY)
    ended = shell("spaces", "score", "partly.py", "--configurations", 4, "--scores", "parameters", "--json")
    assert ended.code == 0, ended
    assert {row["configuration"]["width"] for row in json.loads(ended.out)} == {1, 4}
    assert "PRINTED" in ended.err
    assert "2 of 4 networks cannot be built or scored; one reason: " in ended.err


def test_space_whose_networks_all_fail_completes_nothing_and_says_why(shell: Shell) -> None:
    (shell.folder / "never.py").write_text(PARTLY.replace("== 3", "!= 2"))
    ended = shell("spaces", "score", "never.py", "--configurations", 2)
    assert ended.code == 3
    assert "4 of 4 networks cannot be built" in ended.err
    assert "KeyError: 'width'" in ended.err or "SystemExit: it called sys.exit(0)" in ended.err


def test_equal_scores_share_their_ranks() -> None:
    values = [3.0, 1.0, 3.0, float("-inf")]
    assert [_rank(value, values) for value in values] == [1.5, 3.0, 1.5, 4.0]
