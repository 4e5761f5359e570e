"""What `--json` prints."""

from collections.abc import Mapping
from typing import Any

import typer

from search_spaces.strict_json import strict_json
from studies.trial import Trial

__all__ = ["print_json", "trial_document"]


def trial_document(trial: Trial) -> Mapping[str, Any]:
    """A trial with all that is known about it."""
    return {
        "trial": trial.number,
        "state": trial.state.value,
        "value": trial.value,
        "cause": trial.cause,
        "epoch": trial.last_epoch,
        "attempt": trial.attempt,
        "losses": trial.losses,
        "imported": trial.is_imported,
        "owner": trial.owner,
        "configuration": dict(trial.configuration),
        "reports": {str(epoch): value for epoch, value in trial.reports.items()},
        "started_at": None if trial.started_at is None else trial.started_at.isoformat(),
        "ended_at": None if trial.ended_at is None else trial.ended_at.isoformat(),
        "attributes": dict(trial.attributes),
    }


def print_json(document: object) -> None:
    """Print a document as strict JSON."""
    typer.echo(strict_json(document, indent=2))
