"""`automl stop`."""

import typer

from automl.cli.options import StorageOption, StudyArgument

__all__ = ["stop"]


def stop(study: StudyArgument, storage: StorageOption = None) -> int:
    """End the search of a study on every machine, after the running epochs.

    Running trials are paused, and `automl resume` goes on with them whenever it is asked to.
    """
    from automl.cli.outcome import command
    from automl.lookup import find_study
    from automl.searchers import processes, searchers

    found = find_study(study, storage).study
    # Asked for in any case: a process between two trials holds no lease by which it could be seen.
    found.stop()
    searching = searchers(found.look())
    if not searching:
        typer.echo(f"nobody searches study '{study}'")
        return 0
    typer.echo(f"study '{study}': {processes(searching)} will end after the running epoch")
    for searcher in searching:
        typer.echo(f"  {searcher.name}: trial {', '.join(map(str, searcher.trials))}")
    typer.echo(f"go on with: {command('resume', study)}")
    return 0
