"""Our own tables, which stand beside Optuna's in the same database."""

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Double, Integer, MetaData, String, Table, Text, false

from studies.schema.clock import utc_now

__all__ = [
    "VERSION_TABLE",
    "automl_checkpoints",
    "automl_reports",
    "automl_spaces",
    "automl_studies",
    "automl_trials",
]

VERSION_TABLE = "automl_alembic_version"
"""Our migrations' own version table: `alembic_version` is Optuna's."""

_metadata = MetaData()

automl_studies = Table(
    "automl_studies",
    _metadata,
    Column("study_id", Integer, primary_key=True),
    Column("specification", Text, nullable=False),
    Column("max_trials", Integer),
    Column("timeout_s", Double),
    Column("target_value", Double),
    Column("searched_s", Double, nullable=False, server_default="0"),
    Column("searched_until", Double),
    Column("stopped_at", Double),
    Column("token", String(32)),
)
"""What is searched, as JSON, and the rules that end the search on every machine.

`searched_s`: how long anybody has worked on the study. `searched_until`: when somebody last said so, null when the last
one said goodbye; `stopped_at`: when a person last asked for the end (both in seconds since 1970, database clock).
`token`: random, because a database may give the key of a deleted study out again.
"""

automl_spaces = Table(
    "automl_spaces",
    _metadata,
    Column("study_id", Integer, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("space", Text, nullable=False),
    Column("created_at", DateTime, nullable=False, default=utc_now()),
)
"""Every form that the study's search space has had, as JSON; versions count from 1."""

automl_trials = Table(
    "automl_trials",
    _metadata,
    Column("trial_id", Integer, primary_key=True),
    Column("study_id", Integer, nullable=False),
    Column("configuration", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("owner", String(512)),
    Column("expires_at", Double),
    Column("infeasible", Boolean, nullable=False),
    Column("revision", Integer, nullable=False, server_default="0"),
    Column("losses", Integer, nullable=False, server_default="0"),
    Column("imported", Boolean, nullable=False, server_default=false()),
)
"""The configuration as it was used, bit for bit, and the lease.

`attempt` 0: never started. `owner` and `expires_at` (seconds since 1970, database clock) are null without a lease.
`infeasible` tells a refused trial from a failed one; Optuna has one state for both. `revision` rises with everything
that is written to a trial, so that readers find what changed. `losses`: how often its owner was lost. `imported`: it
was trained elsewhere, and holds no place in the budget.
"""

automl_reports = Table(
    "automl_reports",
    _metadata,
    Column("trial_id", Integer, primary_key=True),
    Column("epoch", Integer, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("metrics", Text, nullable=False),
    Column("reported_at", DateTime, nullable=False, default=utc_now()),
)
"""Everything measured in an epoch, as JSON; the objective itself is Optuna's intermediate value."""

automl_checkpoints = Table(
    "automl_checkpoints",
    _metadata,
    Column("trial_id", Integer, primary_key=True),
    Column("path", String(1024), primary_key=True),
    Column("epoch", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("digest", String(128), nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
)
"""The ledger of checkpoints; `path` is POSIX and relative to the artifacts root."""
