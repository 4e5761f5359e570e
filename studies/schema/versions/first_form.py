"""First form: specifications, leases, reports and the ledger of checkpoints."""

import sqlalchemy as sa
from alembic import op

from studies.schema.kinds import LONG_TEXT, MOMENT, MYSQL_TABLE, PATH

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TRIAL_TABLES = ("automl_trials", "automl_reports", "automl_checkpoints")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "automl_studies",
        _owner("studies.study_id"),
        sa.Column("specification", LONG_TEXT, nullable=False),
        **MYSQL_TABLE,
    )
    op.create_table(
        "automl_trials",
        _owner("trials.trial_id"),
        sa.Column("study_id", sa.Integer, nullable=False, index=True),
        sa.Column("configuration", LONG_TEXT, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("owner", sa.String(512)),
        sa.Column("expires_at", sa.Double),
        sa.Column("infeasible", sa.Boolean, nullable=False),
        **MYSQL_TABLE,
    )
    op.create_table(
        "automl_reports",
        _owner("trials.trial_id"),
        sa.Column("epoch", sa.Integer, primary_key=True),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("metrics", LONG_TEXT, nullable=False),
        sa.Column("reported_at", MOMENT, nullable=False),
        **MYSQL_TABLE,
    )
    op.create_table(
        "automl_checkpoints",
        _owner("trials.trial_id"),
        sa.Column("path", PATH, primary_key=True),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(128), nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        **MYSQL_TABLE,
    )
    if op.get_bind().dialect.name == "sqlite":
        _forget_what_optuna_deletes()


def downgrade() -> None:
    """Drop the tables."""
    for table in (*_TRIAL_TABLES, "automl_studies"):
        op.drop_table(table)
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER IF EXISTS automl_study_deleted")
        op.execute("DROP TRIGGER IF EXISTS automl_trial_deleted")


def _owner(column: str) -> sa.Column[int]:
    name = column.partition(".")[2]
    return sa.Column(name, sa.Integer, sa.ForeignKey(column, ondelete="CASCADE"), primary_key=True, autoincrement=False)


def _forget_what_optuna_deletes() -> None:
    # SQLite honours foreign keys only on connections that ask for it, which Optuna's do not, and it gives the id of a
    # deleted row out again: a trial would be born with the lease of a dead one.
    op.execute(
        "CREATE TRIGGER automl_study_deleted AFTER DELETE ON studies BEGIN"
        " DELETE FROM automl_studies WHERE study_id = OLD.study_id; END"
    )
    deletes = " ".join(f"DELETE FROM {table} WHERE trial_id = OLD.trial_id;" for table in _TRIAL_TABLES)
    op.execute(f"CREATE TRIGGER automl_trial_deleted AFTER DELETE ON trials BEGIN {deletes} END")
