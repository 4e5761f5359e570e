"""`automl space diff`: what has changed in a search space since a study last used it."""

from typing import Annotated, Any

import typer

from automl.cli.options import JsonOption, StorageOption, StudyArgument

__all__ = ["space"]

space = typer.Typer(help="Compare the search space of a study with the one that it has stored.", rich_markup_mode=None)


@space.command("diff")
def diff(
    study: StudyArgument,
    reference: Annotated[
        str | None, typer.Option("--space", help="The changed space. Default: the study's own.", metavar="NAME")
    ] = None,
    storage: StorageOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show how a search space differs from the version that the study has stored last.

    Nothing is written. Exit code 0: the study can go on with it, changed or not; 2: it cannot, and every reason is
    listed.
    """
    from automl.cli.spaces import loaded
    from automl.continuation import check_space, space_history, unfinished_trials, usable_trials
    from automl.lookup import find_study
    from search_spaces.strict_json import strict_json
    from trainers.replaced_parameters import searched_space

    found = find_study(study, storage).study
    whole = loaded(reference or _own_space(found.name, found.specification), study if reference is None else None)
    present = searched_space(whole, found.specification.get("set", {}))
    history = space_history(found, present)
    trials = found.trials()
    facts = {
        "study": study,
        "space": present.name,
        "version": len(history.earlier),
        "changes": history.changes,
        "problems": history.problems,
        "trials": len(trials),
        "usable_trials": 0 if history.problems else usable_trials(history, trials),
        "unfinished_trials": unfinished_trials(trials),
    }
    typer.echo(strict_json(facts, indent=2) if as_json else _in_words(facts))
    check_space(found, present)
    return 0


def _own_space(study: str, specification: dict[str, Any]) -> str:
    from automl.errors import InvalidSpecError

    if "space" not in specification:
        raise InvalidSpecError([f"space: study '{study}' was not made by automl; give --space"], "the command line")
    return str(specification["space"])


def _in_words(facts: dict[str, Any]) -> str:
    """The changes, a line each, between what is compared and what it means for the old trials."""
    study, space, version = facts["study"], facts["space"], facts["version"]
    usable = f"{facts['usable_trials']} of {facts['trials']} trials fit it"
    if not version:
        return f"study '{study}' has stored no version of its space yet; the next run stores version 1; {usable}"
    if not facts["changes"]:
        return f"space '{space}' is as version {version} of study '{study}'; {usable}"
    lines = [f"space '{space}' differs from version {version} of study '{study}':"]
    lines += [f"  {change}" for change in facts["changes"]]
    if facts["problems"]:
        return "\n".join([*lines, "the study cannot go on with it"])
    lines.append(f"the study can go on with it as version {version + 1}; {usable}")
    if unfinished := facts["unfinished_trials"]:
        lines.append(f"{unfinished} unfinished trials go on with the configuration they were started with")
    return "\n".join(lines)
