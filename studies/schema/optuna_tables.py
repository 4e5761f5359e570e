"""The columns of Optuna's tables that this package reads and writes.

Optuna creates and migrates these tables; here they are only named, so that a statement costs no import of Optuna. The
revision of the database is checked when it is opened, and a test compares this page with Optuna's own models.
"""

from sqlalchemy import Column, DateTime, Enum, Float, ForeignKey, Integer, MetaData, String, Table, Text

__all__ = [
    "OPTUNA_REVISION",
    "intermediate_values",
    "optuna_metadata",
    "studies",
    "study_directions",
    "study_system_attributes",
    "study_user_attributes",
    "trial_heartbeats",
    "trial_params",
    "trial_system_attributes",
    "trial_user_attributes",
    "trial_values",
    "trials",
]

OPTUNA_REVISION = "v3.2.0.a"
"""The revision of Optuna's schema that this page describes; Optuna keeps it in `alembic_version`."""

optuna_metadata = MetaData()
_FINITE_OR_NOT = ("FINITE", "INF_POS", "INF_NEG")

studies = Table(
    "studies",
    optuna_metadata,
    Column("study_id", Integer, primary_key=True),
    Column("study_name", String(512), nullable=False),
)
study_directions = Table(
    "study_directions",
    optuna_metadata,
    Column("study_direction_id", Integer, primary_key=True),
    Column("direction", Enum("NOT_SET", "MINIMIZE", "MAXIMIZE", name="studydirection"), nullable=False),
    Column("study_id", Integer, ForeignKey("studies.study_id"), nullable=False),
    Column("objective", Integer, nullable=False),
)
trials = Table(
    "trials",
    optuna_metadata,
    Column("trial_id", Integer, primary_key=True),
    Column("number", Integer),
    Column("study_id", Integer, ForeignKey("studies.study_id")),
    Column(
        "state",
        Enum("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING", name="trialstate"),
        nullable=False,
    ),
    Column("datetime_start", DateTime),
    Column("datetime_complete", DateTime),
)
trial_params = Table(
    "trial_params",
    optuna_metadata,
    Column("param_id", Integer, primary_key=True),
    Column("trial_id", Integer, ForeignKey("trials.trial_id")),
    Column("param_name", String(512)),
    Column("param_value", Float(precision=53)),
    Column("distribution_json", Text),
)
trial_values = Table(
    "trial_values",
    optuna_metadata,
    Column("trial_value_id", Integer, primary_key=True),
    Column("trial_id", Integer, ForeignKey("trials.trial_id"), nullable=False),
    Column("objective", Integer, nullable=False),
    Column("value", Float(precision=53)),
    Column("value_type", Enum(*_FINITE_OR_NOT, name="trialvaluetype"), nullable=False),
)
intermediate_values = Table(
    "trial_intermediate_values",
    optuna_metadata,
    Column("trial_intermediate_value_id", Integer, primary_key=True),
    Column("trial_id", Integer, ForeignKey("trials.trial_id"), nullable=False),
    Column("step", Integer, nullable=False),
    Column("intermediate_value", Float(precision=53)),
    Column(
        "intermediate_value_type",
        Enum(*_FINITE_OR_NOT, "NAN", name="trialintermediatevaluetype"),
        nullable=False,
    ),
)
trial_heartbeats = Table(
    "trial_heartbeats",
    optuna_metadata,
    Column("trial_heartbeat_id", Integer, primary_key=True),
    Column("trial_id", Integer, ForeignKey("trials.trial_id"), nullable=False),
)


def _attribute_table(name: str, owner: str) -> Table:
    key = f"{owner}_id"
    return Table(
        name,
        optuna_metadata,
        Column(f"{name.removesuffix('s')}_id", Integer, primary_key=True),
        Column(key, Integer, ForeignKey(f"{'studies' if owner == 'study' else 'trials'}.{key}")),
        Column("key", String(512)),
        Column("value_json", Text),
    )


study_user_attributes = _attribute_table("study_user_attributes", "study")
study_system_attributes = _attribute_table("study_system_attributes", "study")
trial_user_attributes = _attribute_table("trial_user_attributes", "trial")
trial_system_attributes = _attribute_table("trial_system_attributes", "trial")
