"""The shared study database: trials, leases, checkpoints; Optuna's own tools read the same tables.

The names below are imported when they are first used, so that `import studies` loads no database library.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studies.checkpoints import CheckpointLedger as CheckpointLedger
    from studies.errors import BudgetSpentError as BudgetSpentError
    from studies.errors import LeaseLostError as LeaseLostError
    from studies.errors import NotClaimableError as NotClaimableError
    from studies.errors import NumberTakenError as NumberTakenError
    from studies.errors import StorageError as StorageError
    from studies.errors import StudyError as StudyError
    from studies.errors import StudyNotFoundError as StudyNotFoundError
    from studies.identity import process_identity as process_identity
    from studies.leases import LeaseKeeper as LeaseKeeper
    from studies.storage import Storage as Storage
    from studies.study import Study as Study
    from studies.summaries import StudySummary as StudySummary
    from studies.trial import Lease as Lease
    from studies.trial import Trial as Trial
    from studies.trial import TrialState as TrialState

_HOMES = {
    "BudgetSpentError": "errors",
    "CheckpointLedger": "checkpoints",
    "Lease": "trial",
    "LeaseKeeper": "leases",
    "LeaseLostError": "errors",
    "NotClaimableError": "errors",
    "NumberTakenError": "errors",
    "Storage": "storage",
    "StorageError": "errors",
    "Study": "study",
    "StudyError": "errors",
    "StudyNotFoundError": "errors",
    "StudySummary": "summaries",
    "Trial": "trial",
    "TrialState": "trial",
    "process_identity": "identity",
}
__all__ = [
    "BudgetSpentError",
    "CheckpointLedger",
    "Lease",
    "LeaseKeeper",
    "LeaseLostError",
    "NotClaimableError",
    "NumberTakenError",
    "Storage",
    "StorageError",
    "Study",
    "StudyError",
    "StudyNotFoundError",
    "StudySummary",
    "Trial",
    "TrialState",
    "process_identity",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'studies' has no attribute {name!r}")
    return getattr(import_module(f"studies.{_HOMES[name]}"), name)
