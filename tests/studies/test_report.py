import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from search_spaces import catalog
from search_spaces.configuration import Configuration
from search_spaces.graph import NetworkGraph
from studies.figures.gallery import FIGURES
from studies.figures.snapshot import StudySnapshot, snapshot_of
from studies.report import render_report, write_report
from studies.storage import Storage
from studies.trial import JsonScalar, TrialState
from tests.studies.figures.examples import ordinary_study, snapshot, trial, with_configuration
from tests.studies.figures.odd_studies import ODD_STUDIES

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def figures_of(page: str) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    parsed: dict[str, Any] = json.loads(found.group(1), parse_constant=refuse)
    return parsed


def text_of(page: str) -> str:
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def draw_cell(configuration: Mapping[str, JsonScalar]) -> NetworkGraph | None:
    return catalog.graph(catalog.load("nas_small"), configuration)


def cell_study() -> StudySnapshot:
    import numpy as np

    space = catalog.load("nas_small").SPACE
    rng = np.random.default_rng(7)
    trials = [
        replace(trial(i, value=0.9 + i / 1000, reports={1: 0.5, 2: 0.9 + i / 1000}), configuration=space.sample(rng))
        for i in range(12)
    ]
    return snapshot(*trials, direction="maximize")


def test_report_of_an_ordinary_study_says_what_came_out(tmp_path: Path) -> None:
    path = write_report(ordinary_study(60), tmp_path / "deep" / "report.html")
    page = path.read_text(encoding="utf-8")
    text = text_of(page)
    best = snapshot_of(ordinary_study(60)).best
    assert best is not None
    assert f"Trial {best.number} reached the highest accuracy, {best.value:.6g}." in text
    assert "On the test data its model scores accuracy 0.9694 and balanced accuracy 0.9671." in text
    assert "CUDA out of memory" in text
    assert set(figures_of(page)) == set(FIGURES)
    assert all(kind.explanation in text for kind in FIGURES.values())
    assert os.listdir(path.parent) == ["report.html"]


def test_report_needs_nothing_from_outside(tmp_path: Path) -> None:
    page = write_report(ordinary_study(12), tmp_path / "r.html").read_text(encoding="utf-8")
    ours = re.sub(r"<script>/\*\*\n\* plotly\.js.*?</script>", "", page, flags=re.DOTALL)
    assert len(ours) < len(page) / 2  # the library was found and left out
    assert not re.search(r'(?:src|href)="(?!data:)', ours)
    assert "default-src 'none'" in ours
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", ours)


@pytest.mark.parametrize(
    "name", ["empty", "all pruned", "pruned without steps", "all infinite", "nan steps", "only queued"]
)
def test_report_of_an_odd_study_is_a_page_with_strict_json(name: str) -> None:
    study = ODD_STUDIES[name]
    page = render_report(study)
    text = text_of(page)
    drawn = figures_of(page)
    assert len(drawn) + text.count(": not defined (") == len(FIGURES)
    if study.best is None:
        assert "No trial is complete" in text


@pytest.mark.parametrize(
    ("study", "reason"), [("one trial", "1 complete trial"), ("constant value", "value never changes")]
)
def test_report_says_why_importance_is_not_defined(study: str, reason: str) -> None:
    assert f"{FIGURES['importances'].title}: not defined ({reason})." in text_of(render_report(ODD_STUDIES[study]))


def test_report_counts_failures_by_cause() -> None:
    text = text_of(render_report(ODD_STUDIES["all failed"]))
    assert "Of 5 trials, 5 failed. Causes of failure: oom (5)." in text
    assert "0, 1, 2, 3 and 4 out of memory" in text


def test_text_from_outside_is_escaped_everywhere() -> None:
    evil = "<script>alert('x')</script>"
    trials = [
        with_configuration(
            trial(i, value=i / 7, reports={1: 0.1, 2: i / 7}), {evil: [evil, "&amp;"][i % 2], "x": i / 7}
        )
        for i in range(8)
    ]
    failed = trial(8, TrialState.FAILED, cause=evil, error=evil, x=1.0)
    study = replace(snapshot(*trials, failed), name=evil, metric=evil, attributes={"test": {evil: 1.0}})
    page = render_report(study, roles={"x": evil})
    assert "<script>alert" not in page
    assert "alert(" in text_of(page)


def test_cell_of_the_best_network_is_drawn_and_parameters_are_grouped(tmp_path: Path) -> None:
    space = catalog.load("nas_small").SPACE
    study = cell_study()
    page = write_report(study, tmp_path / "r.html", space=space, graph=draw_cell).read_text(encoding="utf-8")
    assert study.best is not None
    assert f"Cell of trial {study.best.number}" in page
    drawn = draw_cell(Configuration(study.best.configuration))
    assert drawn is not None
    assert page.count('class="pill"') == len(drawn.edges)
    assert "<h3>architecture</h3>" in page
    assert "<h3>training</h3>" in page


def test_space_that_draws_nothing_gives_a_report_without_a_drawing() -> None:
    def nothing(configuration: object) -> None:
        return None

    assert 'class="net"' not in render_report(replace(cell_study(), trials=cell_study().trials[:1]), graph=nothing)


def test_report_replaces_the_old_one_and_leaves_it_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_report(ODD_STUDIES["one trial"], tmp_path / "r.html")
    before = path.read_bytes()

    def full(self: Path, *_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(ODD_STUDIES["two equal"], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["r.html"]


def test_plain_optuna_study_has_a_report(tmp_path: Path) -> None:
    study = optuna.create_study(study_name="plain")
    study.optimize(lambda running: running.suggest_float("x", 0, 1) ** 2, n_trials=6)
    assert "plain" in text_of(write_report(study, tmp_path / "r.html").read_text(encoding="utf-8"))


def test_study_in_a_database_has_a_report(tmp_path: Path) -> None:
    from optuna.distributions import FloatDistribution

    study = Storage(f"sqlite:///{tmp_path / 's.db'}").create_study(
        "stored", direction="maximize", specification={"metric": "accuracy"}
    )
    for number in range(3):
        lease = study.create_trial(
            number=number,
            configuration={"x": number / 4},
            distributions={"x": FloatDistribution(0.0, 1.0)},
            owner="me",
            ttl_s=60.0,
        )
        study.report(lease, epoch=1, value=number / 4, metrics={}, checkpoint=None)
        study.tell(lease, TrialState.COMPLETE, value=number / 4)
    study.set_attribute("test", {"trial": 2, "metrics": {"accuracy": 0.375}})
    text = text_of(write_report(study, tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "Trial 2 reached the highest accuracy, 0.5." in text
    assert "On the test data its model scores accuracy 0.375." in text


@pytest.mark.slow
def test_report_of_5000_trials_is_small_and_quick(tmp_path: Path) -> None:
    study = ordinary_study(5000, epochs=5)
    began = time.process_time()  # other work on the machine does not count
    path = write_report(study, tmp_path / "r.html")
    assert time.process_time() - began < 25
    assert path.stat().st_size < 15e6


def open_in_chromium(page: Path, folder: Path, *flags: str) -> tuple[str, str, set[str]]:
    """Return the page as it stands after its scripts, the console, and the addresses that the page asked for."""
    assert CHROMIUM is not None
    log = folder / "net.json"
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}",
        "--enable-logging=stderr", "--virtual-time-budget=30000", "--window-size=1200,2000",
        *flags, "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    events = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    # The browser's own requests (for updates of itself) have no origin; those of a page do.
    asked = {e["url"] for e in events if "url" in e and e.get("initiator", "not an origin") != "not an origin"}
    return done.stdout, console, {url for url in asked if not url.startswith(("data:", "blob:"))}


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_browser_check_sees_a_request_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<img src="http://example.org/picture.png"><script>console.log("hello")</script>')
    _, console, requests = open_in_chromium(page, tmp_path)
    assert requests == {"http://example.org/picture.png"}
    assert "hello" in console


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_browser_draws_every_figure_asks_for_nothing_and_is_silent(tmp_path: Path, theme: str) -> None:
    path = write_report(ordinary_study(40), tmp_path / "report.html")
    flags = ("--blink-settings=preferredColorScheme=0",) if theme == "dark" else ()
    dom, console, requests = open_in_chromium(path, tmp_path, *flags)
    assert 'data-drawn="all"' in dom
    assert {name for name in FIGURES if re.search(rf'id="figure-{name}"[^>]*data-drawn="yes"', dom)} == set(FIGURES)
    assert dom.count('class="main-svg"') >= len(FIGURES)
    assert console == ""
    assert requests == set()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize("name", ["empty", "infinite values", "nan steps", "html in names", "pruned without steps"])
def test_browser_opens_the_report_of_an_odd_study(tmp_path: Path, name: str) -> None:
    path = write_report(ODD_STUDIES[name], tmp_path / "report.html")
    dom, console, _ = open_in_chromium(path, tmp_path)
    drawn = set(figures_of(path.read_text(encoding="utf-8")))
    assert {figure for figure in FIGURES if re.search(rf'id="figure-{figure}"[^>]*data-drawn="yes"', dom)} == drawn
    assert ">odd</h1>" in dom
    assert console == ""
