"""What the database costs a trial: this project's study beside plain Optuna's `RDBStorage`, in one run.

Both do what a search does with a trial of 10 parameters and 3 epochs: look at the study and create the trial, report
each epoch and look at what the others have reported, end the trial. Optuna does it with its cheapest sampler and no
pruner, so that only its storage is measured. The two take turns, trial by trial, on databases that are filled alike.

    python -m benchmarks.study_overhead [--json] [--sizes 100,1000,10000] [--databases sqlite,postgresql]
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import FloatDistribution
from sqlalchemy import Engine, event

from studies.identity import process_identity
from studies.storage import Storage
from studies.study import Study
from studies.trial import TrialState
from tests.helpers.many_trials import distributions_of, fill_study
from tests.helpers.postgres import running_postgres

EPOCHS = 3
PARAMETERS = 10
TRIALS = 60
"""Measured trials of each side, for one size of one database."""
WARM_UP = 10

LEAST_RATIO = 8.0
MOST_TRANSACTIONS = 3
MOST_STATEMENTS = 15
MOST_GROWTH = 1.5
"""Flat, up to the noise: how much more a trial may cost among 10,000 than among 100."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One database at one size; times are medians over the measured trials.

    Attributes:
        transactions: that write, of one trial, without its reports.
        statements: of one trial, without its reports.
        report_transactions: that write, of one report.
    """

    database: str
    trials: int
    ours_ms: float
    optuna_ms: float
    ratio: float
    transactions: float
    statements: float
    report_transactions: float
    optuna_transactions: float
    optuna_statements: float


@contextmanager
def counted(engine: Engine) -> Iterator[Counter[str]]:
    """Count the statements and the commits of an engine."""
    seen: Counter[str] = Counter()

    def statement(connection: Any, cursor: Any, text: str, *others: Any) -> None:
        seen["statements"] += not text.startswith("BEGIN")

    def commit(connection: Any) -> None:
        seen["transactions"] += 1

    event.listen(engine, "before_cursor_execute", statement)
    event.listen(engine, "commit", commit)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", statement)
        event.remove(engine, "commit", commit)


class Ours:
    """A study of this project."""

    def __init__(self, storage: Storage, study: Study) -> None:
        self._study = study
        self._engine = storage.engine
        self._distributions = distributions_of(PARAMETERS)
        self._random = random.Random(0)
        self._owner = process_identity()

    def trial(self, count: Callable[[str], Any] = lambda part: None) -> None:
        """Run one trial; `count` is told where its parts begin."""
        count("trial")
        view = self._study.look()
        lease = self._study.create_trial(
            len(view.trials), self._configuration(), self._distributions, owner=self._owner, ttl_s=90.0
        )
        for epoch in range(1, EPOCHS + 1):
            count("report")
            self._study.report(lease, epoch, self._random.random(), {"loss": self._random.random()})
        count("trial")
        self._study.tell(lease, TrialState.COMPLETE, value=self._random.random(), attributes={"precision": "fp32"})
        count("end")

    def costs(self) -> Mapping[str, Counter[str]]:
        """Count the statements and commits of one trial: those of its reports, and the others."""
        costs: dict[str, Counter[str]] = {"trial": Counter(), "report": Counter()}
        with counted(self._engine) as seen:
            part, before = "trial", Counter[str]()

            def count(next_part: str) -> None:
                nonlocal part, before
                costs[part] += seen - before
                part, before = "trial" if next_part == "end" else next_part, Counter(seen)

            self.trial(count)
        return costs

    def _configuration(self) -> dict[str, Any]:
        return {name: _drawn(distribution, self._random) for name, distribution in self._distributions.items()}


class Plain:
    """The same study in the hands of plain Optuna."""

    def __init__(self, url: str, name: str) -> None:
        storage = optuna.storages.RDBStorage(url)
        self._engine = storage.engine
        self._study = optuna.load_study(
            study_name=name,
            storage=optuna.storages.get_storage(storage),
            sampler=optuna.samplers.RandomSampler(seed=0),
            pruner=optuna.pruners.NopPruner(),
        )
        self._distributions = distributions_of(PARAMETERS)
        self._random = random.Random(0)

    def trial(self) -> None:
        """Run one trial."""
        trial = self._study.ask()
        for name, distribution in self._distributions.items():
            trial._suggest(name, distribution)
        for epoch in range(1, EPOCHS + 1):
            trial.report(self._random.random(), epoch)
            trial.should_prune()
        trial.set_user_attr("precision", "fp32")
        self._study.tell(trial, self._random.random())

    def costs(self) -> Counter[str]:
        """Count the statements and commits of one trial."""
        with counted(self._engine) as seen:
            self.trial()
        return seen


def _drawn(distribution: Any, rng: random.Random) -> Any:
    if hasattr(distribution, "choices"):
        return rng.choice(distribution.choices)
    value = rng.uniform(distribution.low, distribution.high)
    return value if isinstance(distribution, FloatDistribution) else round(value)


def measure(database: str, url: str, plain_url: str, sizes: Sequence[int]) -> list[Row]:
    """Fill both databases step by step, and measure at each size."""
    rows = []
    with Storage(url) as storage, Storage(plain_url) as plain_storage:
        study = storage.create_study("overhead", direction="minimize")
        plain_study = plain_storage.create_study("overhead", direction="minimize")
        for size in sorted(sizes):
            for filled_storage, filled in ((storage, study), (plain_storage, plain_study)):
                fill_study(filled_storage, filled, size - len(filled.trials()), parameters=PARAMETERS, steps=EPOCHS)
                if database != "sqlite":
                    tidy(filled_storage.engine)
            rows.append(compare(database, size, Ours(storage, study), Plain(_driver(plain_url), "overhead")))
            show(rows[-1])
    return rows


def tidy(engine: Engine) -> None:
    """Do what a server does by itself within a minute: learn that the tables have grown."""
    with engine.connect() as connection:
        connection.exec_driver_sql("VACUUM ANALYZE")


def compare(database: str, size: int, ours: Ours, plain: Plain) -> Row:
    """Let both run trials in turn."""
    for _ in range(WARM_UP):
        ours.trial()
        plain.trial()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(TRIALS):
        for side, taken in zip((ours.trial, plain.trial), times, strict=True):
            began = time.perf_counter()
            side()
            taken.append(1e3 * (time.perf_counter() - began))
    ours_ms, optuna_ms = (statistics.median(taken) for taken in times)
    costs, plain_costs = ours.costs(), plain.costs()
    return Row(
        database=database,
        trials=size,
        ours_ms=round(ours_ms, 2),
        optuna_ms=round(optuna_ms, 2),
        ratio=round(optuna_ms / ours_ms, 1),
        transactions=costs["trial"]["transactions"],
        statements=costs["trial"]["statements"],
        report_transactions=costs["report"]["transactions"] / EPOCHS,
        optuna_transactions=plain_costs["transactions"],
        optuna_statements=plain_costs["statements"],
    )


def goals(rows: Sequence[Row]) -> dict[str, bool]:
    """Which goals are met, on every database and size."""
    growth = [
        max(row.ours_ms for row in own) / min(row.ours_ms for row in own)
        for own in ([row for row in rows if row.database == name] for name in {row.database for row in rows})
    ]
    return {
        f"at least {LEAST_RATIO:g} times less time than Optuna": all(row.ratio >= LEAST_RATIO for row in rows),
        f"at most {MOST_TRANSACTIONS} transactions a trial": all(r.transactions <= MOST_TRANSACTIONS for r in rows),
        f"at most {MOST_STATEMENTS} statements a trial": all(row.statements <= MOST_STATEMENTS for row in rows),
        "one transaction per report": all(row.report_transactions == 1 for row in rows),
        "flat": all(one <= MOST_GROWTH for one in growth),
    }


HEAD = ("database", "trials", "ours ms", "optuna ms", "ratio", "transactions", "statements", "optuna's")


def show(row: Row) -> None:
    """Print a line of the table."""
    optunas = f"{row.optuna_transactions:g}, {row.optuna_statements:g}"
    cells = (row.database, row.trials, row.ours_ms, row.optuna_ms, row.ratio, row.transactions, row.statements, optunas)
    print("".join(f"{cell!s:>13}" for cell in cells), flush=True)


def _driver(url: str) -> str:
    return url.replace("postgresql://", "postgresql+psycopg://")


def main(arguments: Sequence[str]) -> int:
    """Measure, print a table, and with `--json` one JSON object as the last line; 0 when all goals are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--sizes", default="100,1000,10000", help="trials in the study, with commas")
    parser.add_argument("--databases", default="sqlite,postgresql", help="which databases, with commas")
    options = parser.parse_args(arguments)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sizes = [int(size) for size in options.sizes.split(",")]
    print("".join(f"{cell:>13}" for cell in HEAD))
    rows: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for database in options.databases.split(","):
            if database == "sqlite":
                url, plain_url = f"sqlite:///{folder}/ours.db", f"sqlite:///{folder}/plain.db"
            else:
                url, plain_url = (stack.enter_context(running_postgres()) for _ in range(2))
            rows += measure(database, url, plain_url, sizes)
    met = goals(rows)
    for goal, is_met in met.items():
        print(f"{'met' if is_met else 'MISSED':>7}: {goal}")
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "goals_met": met}))
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
