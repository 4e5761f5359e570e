"""`automl simulate` as people type it: tables in words, JSON and pages, and mistakes in words."""

import json
import re

import pytest

from tests.automl.cli.conftest import Shell

LINES = [
    "x,width,epoch,seconds,accuracy",
    *(
        f"{x / 10},{width},{epoch},{width},{0.9 - (x / 10 - 0.3) ** 2 - 0.1 / width - 0.2 / epoch}"
        for x in range(8)
        for width in (1, 2, 4)
        for epoch in range(1, 10)
    ),
]
TABLE = ("--table", "table.csv", "--metric", "accuracy", "--repeats", 3, "--trials", 10)


@pytest.fixture
def table_shell(shell: Shell) -> Shell:
    (shell.folder / "table.csv").write_text("\n".join(LINES))
    return shell


def figures_in(page: str) -> dict[str, dict[str, object]]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    figures: dict[str, dict[str, object]] = json.loads(found[1])
    return figures


def test_table_is_searched_with_every_method(table_shell: Shell) -> None:
    ended = table_shell(
        "simulate", *TABLE, "--sampler", "random,evolution", "--pruner", "none,asha_promote", "--workers", 4,
        "--plot", "pages/out.html",
    )  # fmt: skip
    assert ended.code == 0, ended
    for words in ("best so far", "at the end", "random + none", "evolution + asha_promote", "after 10 trainings",
                  "maximize accuracy", "3 searches each (seeds 0 to 2), 4 workers", "all 10 trials ended"):  # fmt: skip
        assert words in ended.out
    page = (table_shell.folder / "pages" / "out.html").read_text()
    assert set(figures_in(page)) == {"seconds", "trials"}
    assert "default-src 'none'" in page


def test_json_holds_every_search_and_comes_again(table_shell: Shell) -> None:
    asked = ("simulate", *TABLE, "--sampler", "random", "--pruner", "none,asha", "--seed", 5, "--json")
    first, again = (table_shell(*asked) for _ in range(2))
    assert first.out == again.out
    facts = json.loads(first.out)
    assert [search["seed"] for search in facts["methods"][0]["searches"]] == [5, 6, 7]
    bests = [search["best"] for search in facts["methods"][0]["searches"]]
    assert facts["methods"][0]["best"]["mean"] == pytest.approx(sum(bests) / 3)
    assert max(bests) <= 0.9 - 0.1 / 4 - 0.2 / 9 + 1e-9
    assert facts["methods"][1]["better_than_first"] is not None


def test_configurations_that_the_table_lacks_are_told(table_shell: Shell) -> None:
    (table_shell.folder / "space.yaml").write_text("parameters:\n  x: {low: 0.0, high: 0.7}\n  width: [1, 2, 4]\n")
    asked = ("simulate", *TABLE, "--space", "space.yaml", "--sampler", "random", "--pruner", "none")
    assert "30 of 30 trainings stand for a configuration that is not known" in table_shell(*asked).out
    refused = table_shell(*asked, "--missing", "refuse")
    assert refused.code == 3
    assert "in 3 of 3 searches no training was complete" in refused.out
    assert "infeasible" in refused.out


def test_function_is_searched(shell: Shell) -> None:
    (shell.folder / "own.py").write_text(
        "def suggest(trial):\n    trial.suggest_float('x', 0, 1)\n\n"
        "def curve(configuration, seed):\n    return [(configuration['x'] + 1 / n, 2.0) for n in range(1, 5)]\n"
    )
    ended = shell("simulate", "--table", "own.py", "--sampler", "random", "--pruner", "none", "--trials", 5,
                  "--repeats", 2, "--epochs", 4, "--metric", "loss")  # fmt: skip
    assert ended.code == 0, ended
    assert "own.py: 1 parameter, 4 epochs; minimize loss" in ended.out
    assert " 40 s " in ended.out


def test_study_is_judged_anew(toy_shell: Shell) -> None:
    asked = ("simulate", "--study", "toy-digits", "--pruner", "asha_promote,median,threshold:upper=0.5")
    ended = toy_shell(*asked)
    assert ended.code == 0, ended
    assert "study 'toy-digits': 4 trials, 12 epochs trained, 3 epochs in full; minimize loss" in ended.out
    assert re.search(r"^as it was +12 ", ended.out, flags=re.MULTILINE)
    assert "threshold:upper=0.5: trial" in ended.out
    facts = json.loads(toy_shell(*asked, "--json").out)
    assert [rule["pruner"] for rule in facts["rules"]] == ["asha_promote", "median", "threshold:upper=0.5"]
    assert facts["rules"][2]["epochs_saved"] == 8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["give one of both"]),
        (("--table", "table.csv", "--study", "s", "--direction", "up"), ["2 mistakes", "give one of both", "'up'"]),
        (("--study", "s", "--trials", 3, "--space", "x"), ["trials: is for --table", "space: is for --table"]),
        (("--table", "table.csv"), ["no column 'value'", "columns: x, width, epoch, seconds, accuracy"]),
        ((*TABLE, "--sampler", "best"), ["no sampler 'best'"]),
        ((*TABLE, "--sampler", "evolution:warmup_draws=50"), ["would score networks by synflow"]),
        ((*TABLE, "--plot", "."), ["plot: cannot write ."]),
        (("--table", "none.csv"), ["none.csv cannot be read"]),
        (("--study", "nobody"), ["no study 'nobody'"]),
    ],
    ids=["nothing", "both", "of tables", "metric", "sampler", "sampler of networks", "plot", "no file", "no study"],
)
def test_mistakes_are_told_in_words(table_shell: Shell, arguments: tuple[str | int, ...], words: list[str]) -> None:
    ended = table_shell("simulate", *arguments)
    assert ended.code == 2, ended
    assert "Traceback" not in ended.err
    for expected in words:
        assert expected in ended.err
