"""Fills a study with thousands of ended trials in seconds: in bulk, past the calls that a search would make.

The rows are those that `Study.create_trial`, `report` and `tell` would have left, so that whatever reads a study, or
goes on with it, finds nothing unusual. Columns of our own tables that are not named here keep their defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from sqlalchemy import Connection, Table, func, select

from studies.json_text import metrics_to_json, to_json
from studies.parameters import stored_parameters
from studies.schema import optuna_tables as optuna
from studies.schema.tables import automl_reports, automl_trials
from studies.storage import Storage
from studies.study import Study
from studies.transactions import Transactions
from studies.trial import JsonScalar, TrialState
from studies.trial_rows import OPTUNA_STATES

__all__ = ["distributions_of", "fill_study"]

_START = datetime(2026, 1, 1)
"""Naive UTC, as the database holds times."""
_AT_ONCE = 1000
"""Trials of one transaction: enough for speed, few enough for the memory."""
_STATES = (
    TrialState.COMPLETE, TrialState.COMPLETE, TrialState.PRUNED, TrialState.COMPLETE, TrialState.COMPLETE,
    TrialState.COMPLETE, TrialState.FAILED, TrialState.COMPLETE, TrialState.PRUNED, TrialState.COMPLETE,
)  # fmt: skip
"""What every ten trials come to: seven complete, two pruned, one failed."""


def fill_study(
    storage: Storage, study: Study, number_of_trials: int, parameters: int = 10, steps: int = 3, seed: int = 0
) -> None:
    """Add ended trials to a study; they follow those that it has already.

    Of ten trials seven are COMPLETE, two PRUNED and one FAILED after the first step. What a trial is depends on `seed`
    and its number alone, so that filling in two calls gives the same study as filling in one.

    Args:
        storage: the database of the study.
        study: it may have trials, of the same parameters.
        number_of_trials: how many to add.
        parameters: how many parameters each has; see `distributions_of`.
        steps: epochs of a complete trial, each with a report of two metrics.
        seed: chooses configurations and values.
    """
    transactions = Transactions(storage.engine, storage.url)
    distributions = distributions_of(parameters)
    for done in range(0, number_of_trials, _AT_ONCE):
        count = min(_AT_ONCE, number_of_trials - done)

        def work(connection: Connection, count: int = count) -> None:
            # Where trials get their numbers the study's row is locked; Optuna does the same.
            connection.execute(select(optuna.studies).where(optuna.studies.c.study_id == study.id).with_for_update())
            first = _next_number(connection, study.id)
            trials = [_invented(number, distributions, steps, seed) for number in range(first, first + count)]
            _insert(connection, study.id, trials, distributions)

        transactions.write(work)
    transactions.settle()


def distributions_of(parameters: int) -> dict[str, BaseDistribution]:
    """The distributions of `p0`, `p1`, ...: by turns a float, a float on a log scale, an integer and a choice."""
    kinds: tuple[BaseDistribution, ...] = (
        FloatDistribution(0.0, 1.0),
        FloatDistribution(1e-5, 1e-1, log=True),
        IntDistribution(1, 64),
        CategoricalDistribution(("adam", "adamw", "sgd")),
    )
    return {f"p{index}": kinds[index % len(kinds)] for index in range(parameters)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Invented:
    """A trial that never took place."""

    number: int
    state: TrialState
    configuration: Mapping[str, JsonScalar]
    reports: Mapping[int, float]
    attributes: Mapping[str, object]
    started: datetime
    ended: datetime

    @property
    def value(self) -> float | None:
        """The last report; None for one that failed."""
        return None if self.state is TrialState.FAILED else self.reports[max(self.reports)]


def _invented(number: int, distributions: Mapping[str, BaseDistribution], steps: int, seed: int) -> _Invented:
    rng = np.random.default_rng([seed, number])
    configuration = {name: _drawn(distribution, rng) for name, distribution in distributions.items()}
    state = _STATES[number % len(_STATES)]
    last = steps if state is TrialState.COMPLETE else 1
    level = float(rng.random())
    reports = {epoch: level + 1.0 / epoch + 0.01 * float(rng.random()) for epoch in range(1, last + 1)}
    started = _START + timedelta(seconds=60.0 * number)
    return _Invented(
        number=number,
        state=state,
        configuration=configuration,
        reports=reports,
        attributes=_attributes(state, reports),
        started=started,
        ended=started + timedelta(seconds=10.0 * last),
    )


def _attributes(state: TrialState, reports: Mapping[int, float]) -> dict[str, object]:
    if state is TrialState.FAILED:
        return {"cause": "oom", "error": "OutOfMemoryError: tried to allocate 2 GiB"}
    return {"best_epoch": max(reports), "precision": "fp32"}


def _drawn(distribution: BaseDistribution, rng: np.random.Generator) -> JsonScalar:
    if isinstance(distribution, CategoricalDistribution):
        choice: JsonScalar = distribution.choices[int(rng.integers(len(distribution.choices)))]
        return choice
    if isinstance(distribution, IntDistribution):
        return int(rng.integers(distribution.low, distribution.high + 1))
    assert isinstance(distribution, FloatDistribution)
    if distribution.log:
        return float(np.exp(rng.uniform(np.log(distribution.low), np.log(distribution.high))))
    return float(rng.uniform(distribution.low, distribution.high))


def _next_number(connection: Connection, study_id: int) -> int:
    query = select(func.count()).select_from(optuna.trials).where(optuna.trials.c.study_id == study_id)
    return int(connection.execute(query).scalar_one())


def _insert(
    connection: Connection,
    study_id: int,
    trials: Sequence[_Invented],
    distributions: Mapping[str, BaseDistribution],
) -> None:
    _insert_all(connection, optuna.trials, [_trial_row(study_id, trial) for trial in trials])
    keys = _keys(connection, study_id, trials[0].number)
    rows: dict[Table, list[dict[str, Any]]] = {}
    for trial in trials:
        for table, more in _child_rows(study_id, keys[trial.number], trial, distributions).items():
            rows.setdefault(table, []).extend(more)
    for table, table_rows in rows.items():
        _insert_all(connection, table, table_rows)


def _insert_all(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(table.insert(), rows)


def _keys(connection: Connection, study_id: int, first: int) -> dict[int, int]:
    """Number -> key. The database gives the keys, so that it goes on counting from them."""
    trials = optuna.trials.c
    query = select(trials.number, trials.trial_id).where(trials.study_id == study_id, trials.number >= first)
    return {row.number: row.trial_id for row in connection.execute(query)}


def _trial_row(study_id: int, trial: _Invented) -> dict[str, Any]:
    return {
        "study_id": study_id,
        "number": trial.number,
        "state": OPTUNA_STATES[trial.state],
        "datetime_start": trial.started,
        "datetime_complete": trial.ended,
    }


def _child_rows(
    study_id: int, key: int, trial: _Invented, distributions: Mapping[str, BaseDistribution]
) -> dict[Table, list[dict[str, Any]]]:
    own = {
        "trial_id": key,
        "study_id": study_id,
        "configuration": to_json(dict(trial.configuration), "the configuration"),
        "attempt": 1,
        "infeasible": False,
    }
    return {
        automl_trials: [own],
        optuna.trial_params: [
            {
                "trial_id": key,
                "param_name": parameter.name,
                "param_value": parameter.internal_value,
                "distribution_json": parameter.distribution_json,
            }
            for parameter in stored_parameters(trial.configuration, distributions)
        ],
        optuna.trial_values: _value_rows(key, trial.value),
        optuna.intermediate_values: [
            {"trial_id": key, "step": epoch, "intermediate_value": value, "intermediate_value_type": "FINITE"}
            for epoch, value in trial.reports.items()
        ],
        automl_reports: [
            {
                "trial_id": key,
                "epoch": epoch,
                "attempt": 1,
                "metrics": metrics_to_json({"loss": value, "accuracy": 1.0 / (1.0 + value)}),
                "reported_at": trial.started + timedelta(seconds=10.0 * epoch),
            }
            for epoch, value in trial.reports.items()
        ],
        optuna.trial_user_attributes: [
            {"trial_id": key, "key": name, "value_json": to_json(fact, f"attribute {name!r}")}
            for name, fact in trial.attributes.items()
        ],
    }


def _value_rows(key: int, value: float | None) -> list[dict[str, Any]]:
    if value is None:
        return []
    return [{"trial_id": key, "objective": 0, "value": value, "value_type": "FINITE"}]
