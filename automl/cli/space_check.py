"""`automl spaces check`: all that is wrong with a space of one's own, found before any search."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from automl.cli.space_draws import check_hooks, check_refusal, drawn, tried
from automl.cli.space_words import NO_NETWORK, builds_or_trains, count_in_words

if TYPE_CHECKING:
    from search_spaces.configuration import Configuration
    from search_spaces.space import SearchSpace
    from trainers.space_trial import Sample
    from trainers.space_trial import Tried as TriedNetwork
    from trainers.trainer import Trainer

__all__ = ["check", "sample_for"]

MOST_REASONS = 5
"""Reasons for which networks are infeasible that are printed."""


def check(
    file: Annotated[str, typer.Argument(help="A .py or .yaml file, or the name of a space.", metavar="FILE")],
    data: Annotated[
        str | None,
        typer.Option(
            "--data", help="Data to build networks for. Default: made-up ones of a usual size.", metavar="DATA"
        ),
    ] = None,
    configurations: Annotated[
        int, typer.Option("--configurations", help="Random networks that are tried.", metavar="N", min=1)
    ] = 20,
    seed: Annotated[int, typer.Option("--seed", help="Of the draws.", metavar="N", min=0)] = 0,
) -> int:
    """Check a space: read it, and build random networks that learn one step.

    Nothing is stored. Exit code 0: it can be searched; 2: it cannot, and every reason is listed.
    """
    from automl.errors import InvalidSpecError

    space = _read(file)
    for note in space.notes:
        typer.echo(f"note: {note}")
    trainer, problems = _trainer(file, space)
    sample = None if trainer is None else _sample(file, trainer, data)
    defaults = [] if space.defaults is None else [space.defaults]
    drawn_ones = [*defaults, *islice(drawn(space, seed), configurations)]
    if trainer is not None:
        problems += _training_problems(space, trainer, drawn_ones)
    problems += _problems_of(file, space, drawn_ones, sample)
    if problems:
        raise InvalidSpecError(problems, file)
    typer.echo("no mistakes were found")
    return 0


def sample_for(reference: str, data: str | None) -> "Sample | None":
    """What the networks of a space are tried with: the first items of data, or made-up ones of its task.

    Raises:
        BadDataError: the data cannot be read.
        InvalidSpecError: there is nobody to read them.
    """
    from automl.errors import InvalidSpecError
    from search_spaces import catalog
    from trainers.data.spec import DataSpec
    from trainers.space_trial import made_up_sample, sample_of
    from trainers.training_choice import load_named_trainer, placed_data, trainer_reference

    if data is None:
        return made_up_sample(catalog.load(reference, has_networks=False).SPACE.task)
    try:
        trainer = load_named_trainer(trainer_reference(reference, None, None))
        source = DataSpec(source=data)
        trainer.check(source)
        return sample_of(trainer, reference, trainer.load(placed_data(source)))
    except ValueError as error:
        raise InvalidSpecError([f"data: {error}"], "the command line") from error


def _read(file: str) -> "SearchSpace":
    """The space of a file, or a message with all that is wrong with its parameters."""
    from automl.cli.spaces import loaded
    from automl.errors import InvalidSpecError
    from search_spaces.file_faults import parameter_faults

    path = Path(file).expanduser()
    try:
        return loaded(file)
    except InvalidSpecError as error:
        faults: Sequence[str] = ()
        if path.suffix in (".yaml", ".yml") and path.is_file():
            faults = _yaml_faults(path)
        elif path.suffix == ".py" and path.is_file():
            faults = parameter_faults(path)
        raise InvalidSpecError(faults or error.problems, file) from error


def _yaml_faults(path: Path) -> Sequence[str]:
    from search_spaces.yaml_file import read_yaml_space

    reading = read_yaml_space(path)
    for note in reading.notes:
        typer.echo(f"note: {note}")
    return reading.faults


def _trainer(file: str, space: "SearchSpace") -> tuple["Trainer | None", list[str]]:
    """Say what the space is for, and find who trains it; None: that is said in each search."""
    from search_spaces import catalog
    from trainers.training_choice import check_parameters, load_named_trainer, trainer_reference

    count = f"{len(space.parameters)} parameters, {count_in_words(space.size())} configurations"
    if not builds_or_trains(catalog.load(file, has_networks=False)):
        typer.echo(f"space '{space.name}': {count}\n{NO_NETWORK}")
        return None, []
    typer.echo(f"space '{space.name}' for {space.task}: {count}")
    try:
        reference = trainer_reference(file, None, None)
        trainer = load_named_trainer(reference)
        check_parameters(space, trainer, reference)
    except ValueError as error:
        return None, [str(error)]
    return trainer, []


def _sample(file: str, trainer: "Trainer", data: str | None) -> "Sample | None":
    """What networks are tried with; None: none is, which is said."""
    sample = sample_for(file, data) if trainer.has_networks else None
    if sample is None:
        typer.echo("no network is tried: " + ("give --data" if trainer.has_networks else "its own code builds it"))
    return sample


def _training_problems(space: "SearchSpace", trainer: "Trainer", drawn_ones: Sequence["Configuration"]) -> list[str]:
    """Values that a training does not take, each once."""
    from trainers.settings import train_config

    problems: dict[str, None] = {}
    for configuration in drawn_ones:
        try:
            train_config({}, configuration, {}, space, trainer)
        except ValueError as error:
            problems[str(error)] = None
    return list(problems)


def _problems_of(
    file: str, space: "SearchSpace", drawn_ones: Sequence["Configuration"], sample: "Sample | None"
) -> list[str]:
    """Try all and say how it went; what is wrong with some of them is returned, each mistake once.

    Args:
        file: the reference of the space.
        space: read from it.
        drawn_ones: of its configurations.
        sample: what networks are tried with; None: none is built.
    """
    from trainers.space_trial import try_network

    def tried_out(configuration: "Configuration") -> "TriedNetwork | None":
        check_hooks(space, configuration)
        check_refusal(space, configuration)
        return None if sample is None else try_network(file, configuration, sample)

    found = tried(drawn_ones, tried_out)
    if sample is not None:
        typer.echo(f"{len(found.made)} of {found.total} networks were built and learned a step from {sample.words}")
        _say_networks([network for _, network in found.made if network is not None])
    if found.infeasible:
        typer.echo(f"{len(found.infeasible)} of {found.total} are infeasible, and a search would refuse them, such as:")
    for reason, count in Counter(found.infeasible).most_common(MOST_REASONS):
        typer.echo(f"  {count}: {reason}")
    faults = list(found.faults_in_words())
    if found.made or faults:
        return faults
    nothing = "no configuration is left" if sample is None else "no network could be built"
    return [f"{nothing}; a search would find nothing to train"]


def _say_networks(networks: Sequence["TriedNetwork"]) -> None:
    """What networks cost, and which of them have weights in vain."""
    if not networks:
        return
    weights, work = [each.parameters for each in networks], [each.multiply_adds for each in networks]
    typer.echo(f"  {min(weights):,} to {max(weights):,} weights")
    typer.echo(f"  {min(work):,} to {max(work):,} multiply-adds for an item")
    for names, count in Counter(each.idle for each in networks if each.idle).most_common():
        typer.echo(f"note: {count} networks have weights that get no gradient: {', '.join(names)}; do not build them")
