"""Second form: the rules and the clock of a whole study, change marks and losses of trials, versions of the space."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from studies.schema.kinds import LONG_TEXT, MOMENT, MYSQL_TABLE

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STUDY_COLUMNS: tuple[tuple[str, Any, bool], ...] = (
    ("max_trials", sa.Integer, True),
    ("timeout_s", sa.Double, True),
    ("target_value", sa.Double, True),
    ("searched_s", sa.Double, False),
    ("searched_until", sa.Double, True),
    ("stopped_at", sa.Double, True),
    ("token", sa.String(32), True),
)
_TRIAL_COLUMNS: tuple[tuple[str, Any, Any], ...] = (
    ("revision", sa.Integer, "0"),
    ("losses", sa.Integer, "0"),
    ("imported", sa.Boolean, sa.false()),
)
_RULES = {"trials": "max_trials", "timeout": "timeout_s", "target_value": "target_value"}
"""Where the first form kept a study's rules in its specification, and their columns now."""


def upgrade() -> None:
    """Add the columns and the table; the rules move from the specification into their columns."""
    for name, kind, nullable in _STUDY_COLUMNS:
        op.add_column(
            "automl_studies", sa.Column(name, kind, nullable=nullable, server_default=None if nullable else "0")
        )
    for name, kind, default in _TRIAL_COLUMNS:
        op.add_column("automl_trials", sa.Column(name, kind, nullable=False, server_default=default))
    op.create_table(
        "automl_spaces",
        sa.Column(
            "study_id",
            sa.Integer,
            sa.ForeignKey("studies.study_id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("space", LONG_TEXT, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        **MYSQL_TABLE,
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE TRIGGER automl_spaces_deleted AFTER DELETE ON studies BEGIN"
            " DELETE FROM automl_spaces WHERE study_id = OLD.study_id; END"
        )
    _move_rules()


def downgrade() -> None:
    """Drop what was added; the rules are lost."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER IF EXISTS automl_spaces_deleted")
    op.drop_table("automl_spaces")
    for name, _, _ in _TRIAL_COLUMNS:
        op.drop_column("automl_trials", name)
    for name, _, _ in _STUDY_COLUMNS:
        op.drop_column("automl_studies", name)


def _move_rules() -> None:
    studies = sa.table(
        "automl_studies",
        sa.column("study_id", sa.Integer),
        sa.column("specification", sa.Text),
        *(sa.column(column) for column in _RULES.values()),
    )
    connection = op.get_bind()
    for row in connection.execute(sa.select(studies.c.study_id, studies.c.specification)).all():
        specification = json.loads(row.specification)
        rules = {column: specification.pop(name, None) for name, column in _RULES.items()}
        # The first form's time limit was one of a single run, and would end a study that has been searched for longer.
        values = {**rules, "timeout_s": None, "specification": json.dumps(specification)}
        connection.execute(sa.update(studies).where(studies.c.study_id == row.study_id).values(values))
