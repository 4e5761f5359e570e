"""What is said here about Optuna's tables is what the installed Optuna makes."""

from pathlib import Path

from alembic.script import ScriptDirectory
from optuna.storages import _rdb
from optuna.storages._rdb import models
from sqlalchemy import Enum

from studies.schema.optuna_tables import OPTUNA_REVISION, optuna_metadata
from studies.trial import TrialState
from studies.trial_rows import OPTUNA_STATES


def test_revision_is_the_installed_one() -> None:
    scripts = ScriptDirectory(str(Path(_rdb.__path__[0]) / "alembic"))
    assert scripts.get_current_head() == OPTUNA_REVISION


def test_every_table_and_column_is_as_optuna_has_it() -> None:
    theirs = models.BaseModel.metadata.tables
    assert set(theirs) == set(optuna_metadata.tables) | {"version_info"}
    for name, table in optuna_metadata.tables.items():
        for column in table.columns:
            original = theirs[name].columns[column.name]
            assert type(column.type) is type(original.type), (name, column.name)
            assert column.nullable == original.nullable, (name, column.name)
            assert column.primary_key == original.primary_key
            if isinstance(column.type, Enum) and isinstance(original.type, Enum):
                assert set(column.type.enums) == set(original.type.enums)
                assert column.type.name == original.type.name


def test_every_state_has_a_name_in_optuna() -> None:
    assert set(OPTUNA_STATES) == set(TrialState)
    assert set(OPTUNA_STATES.values()) == {"WAITING", "RUNNING", "COMPLETE", "PRUNED", "FAIL"}
