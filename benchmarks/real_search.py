"""A real search, with the defaults, beside Optuna's estimator and successive halving through the same trainer.

    AUTOML_BENCH_DATA=FOLDER OMP_NUM_THREADS=1 python -m benchmarks.real_search [--seeds 3] [--epochs 4] [--json]

Both search `nas_small` on 12,000 images of Fashion-MNIST with two trainings at a time, one thread each. Ours is
`automl.search` as it comes. The peer is what a user of Optuna writes: two processes that share a journal, TPESampler
and SuccessiveHalvingPruner as they come, each trial a training by our trainer with a report after each epoch. Counted
is the time from the start of the programs; shown is the best validation accuracy that was reported by then. A search
is a line of the file that --out names; what is in it already is not run again.
"""

import argparse
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

__all__ = ["Course", "main", "search_as_it_comes", "search_with_optuna"]

WORKERS = 2
SHARES = (0.25, 0.5, 0.75, 1.0)
"""Of the shorter of two times, after which the best accuracies are compared."""
NO_WORSE = 0.003
"""Accuracy on 2,000 validation images is not known better than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a search went.

    Attributes:
        seconds: from the start of the programs to the end.
        epochs: that were trained.
        reports: seconds since the start, and the accuracy.
    """

    seconds: float
    epochs: int
    reports: Sequence[tuple[float, float]]

    def best_by(self, seconds: float) -> float:
        """The best accuracy that was reported by then; 0 before the first report."""
        return max((value for at, value in self.reports if at <= seconds), default=0.0)

    def reached(self, value: float) -> float | None:
        """When an accuracy was reached."""
        return next((at for at, found in self.reports if found >= value), None)


def search_as_it_comes(fields: dict[str, Any], folder: Path) -> Course:
    """Search with our defaults."""
    import automl
    from automl.events import EpochReported, Event
    from automl.observer import Observer

    began, reports = time.monotonic(), []

    class Watch(Observer):
        def notify(self, event: Event) -> None:
            if isinstance(event, EpochReported):
                reports.append((time.monotonic() - began, event.value))

    automl.search(
        **fields,
        concurrency=WORKERS,
        cpus_per_trial=1,
        storage=f"sqlite:///{folder / 'ours.db'}",
        artifacts=str(folder / "ours"),
        observer=Watch(),
    )
    return Course(seconds=time.monotonic() - began, epochs=len(reports), reports=reports)


def search_with_optuna(fields: dict[str, Any], folder: Path) -> Course:
    """Search with Optuna's defaults in processes of their own."""
    began = time.time()
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_optuna_worker, args=(fields, str(folder), place)) for place in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError("a process of the peer has failed; its output says why")
    seconds = time.time() - began
    reports = sorted(
        (at - began, value) for trial in _journal(folder).get_all_trials(0) for at, value in trial.user_attrs["reports"]
    )
    return Course(seconds=seconds, epochs=len(reports), reports=reports)


def _journal(folder: Path | str) -> JournalStorage:
    return JournalStorage(JournalFileBackend(str(Path(folder) / "peer.log")))


def _optuna_worker(fields: dict[str, Any], folder: str, place: int) -> None:
    """What a user of Optuna writes."""
    from automl.spec import SearchSpec
    from automl.tasks import training_of
    from automl.worker import Failure, run_task
    from trainers.config import TrainTask
    from trainers.distributed import Ranks
    from trainers.reporting import Decision, Report

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    spec = SearchSpec.from_mapping(fields, "the benchmark")
    trainer, ranks, space = spec.make_trainer(), Ranks.alone(), spec.search_space
    data = trainer.load(spec.data)
    distributions = space.distributions()

    def objective(trial: optuna.Trial) -> float:
        suggested = {
            name: trial._suggest(name, distribution)  # by the type of the distribution
            for name, distribution in distributions.items()
        }
        configuration = space.validate(suggested)
        if (reason := space.refusal(configuration)) is not None:
            raise optuna.TrialPruned(reason)
        reports: list[tuple[float, float]] = []

        def report(reported: Report) -> Decision:
            value = reported.metrics[spec.metric]
            reports.append((time.time(), value))
            trial.set_user_attr("reports", reports)
            trial.report(value, reported.epoch)
            return Decision.STOP if trial.should_prune() else Decision.CONTINUE

        task = TrainTask(
            space=spec.space,
            configuration=configuration,
            data=spec.data,
            training=training_of(spec, configuration, seed=1000 * spec.seed + trial.number),
            artifacts_root=folder,
            checkpoint_dir=f"peer/{trial.number}",
        )
        outcome = run_task(task, trainer, data, ranks, report)
        if isinstance(outcome, Failure):
            raise RuntimeError(str(outcome))
        if len(reports) < spec.epochs:
            raise optuna.TrialPruned
        return max(value for _, value in reports)

    study = optuna.create_study(
        study_name="peer",
        storage=_journal(folder),
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=WORKERS * spec.seed + place),
        pruner=optuna.pruners.SuccessiveHalvingPruner(),
        load_if_exists=True,
    )
    ends = optuna.study.MaxTrialsCallback(spec.trials, states=None)
    study.optimize(objective, callbacks=[ends])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both with each seed, and print who was where when."""
    parser = argparse.ArgumentParser(prog="real_search", description=__doc__, formatter_class=_Raw)
    parser.add_argument("--seeds", type=int, default=3, help="seeds from 0 on")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--epochs", type=int, default=4, help="of a full training")
    parser.add_argument("--out", type=Path, default=Path("real_search.jsonl"), help="the file of all searches")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON")
    options = parser.parse_args(arguments)
    images = Path(os.environ["AUTOML_BENCH_DATA"]) / "fashion_mnist_12k.npz"
    pairs = []
    for seed in range(options.seeds):
        fields = {
            "space": "nas_small", "data": str(images), "trials": options.trials, "epochs": options.epochs, "seed": seed,
        }  # fmt: skip
        # Who is first takes turns: a machine may become slower or faster meanwhile.
        order = SIDES if seed % 2 == 0 else SIDES[::-1]
        found = {name: _known_or_searched(options.out, name, fields) for name in order}
        pairs.append((found["ours"], found["optuna"]))
        _tell(seed, *pairs[-1])
    ends = [tuple(course.best_by(_shorter(*pair)) for course in pair) for pair in pairs]
    met = mean(ours for ours, _ in ends) >= mean(peer for _, peer in ends) - NO_WORSE
    print(
        f"{'met' if met else 'missed':6} best accuracy when the first of both has ended, ours not worse by {NO_WORSE}"
    )
    if options.json:
        seeds = [{"ours": asdict(ours), "optuna": asdict(peer)} for ours, peer in pairs]
        print(json.dumps({"benchmark": "real_search", "seeds": seeds, "goals_met": met}))
    return 0


def _known_or_searched(out: Path, side: str, fields: Mapping[str, Any]) -> Course:
    """A search that the file has, or a new one, which is added."""
    name = {"side": side, **{key: fields[key] for key in ("trials", "epochs", "seed")}}
    for line in out.read_text().splitlines() if out.exists() else []:
        known = json.loads(line)
        if name.items() <= known.items():
            return Course(**known["course"])
    with tempfile.TemporaryDirectory() as folder:
        course = _SEARCHES[side](dict(fields), Path(folder))
    with out.open("a") as file:
        file.write(json.dumps({**name, "course": asdict(course)}) + "\n")
    return course


SIDES = ("ours", "optuna")
_SEARCHES: Mapping[str, Callable[[dict[str, Any], Path], Course]] = {
    "ours": search_as_it_comes,
    "optuna": search_with_optuna,
}


class _Raw(argparse.RawDescriptionHelpFormatter):
    pass


def _shorter(ours: Course, peer: Course) -> float:
    return min(ours.seconds, peer.seconds)


def _tell(seed: int, ours: Course, peer: Course) -> None:
    print(f"seed {seed}: best validation accuracy by a share of {_shorter(ours, peer):.0f} s")
    for name, course in (("ours", ours), ("Optuna", peer)):
        by = "  ".join(f"{course.best_by(share * _shorter(ours, peer)):.4f}" for share in SHARES)
        end = f"in the end {course.best_by(course.seconds):.4f} after {course.seconds:.0f} s, {course.epochs} epochs"
        print(f"  {name:8} {by}   {end}")
    when = ours.reached(peer.best_by(peer.seconds))
    print(f"  ours has Optuna's last value {'never' if when is None else f'after {when:.0f} s'}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
