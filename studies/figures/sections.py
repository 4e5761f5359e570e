"""The parts of a report that are words and tables, as HTML; every text from outside is escaped here."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from studies.figures.overview import Overview, duration_s
from studies.figures.snapshot import StudySnapshot, value_of
from studies.figures.words import counted, listed, seconds_in_words
from studies.trial import Trial, TrialState

__all__ = [
    "MOST_PARAMETERS",
    "best_configuration",
    "failures",
    "guessing_sentence",
    "header",
    "key_numbers",
    "summary",
    "top_trials",
]

MOST_PARAMETERS = 6
_MOST_NUMBERS = 8


def header(overview: Overview) -> str:
    """Return the page's head: name, objective, size and days of the study."""
    goal = f"{overview.direction} {overview.metric}"
    facts = [goal, counted(sum(overview.counts.values()), "trial"), _days(overview)]
    return (
        f'<header><p class="eyebrow">Study report</p><h1>{escape(overview.study)}</h1>'
        f'<p class="sub">{escape(" · ".join(fact for fact in facts if fact))}</p></header>'
    )


def key_numbers(overview: Overview) -> str:
    """Return the best value, large, beside a tile for each other sum."""
    tiles = [(f"{overview.counts[state]:,}", state.value) for state in TrialState if overview.counts.get(state)]
    if overview.test:
        name = overview.metric if overview.metric in overview.test else next(iter(overview.test))
        tiles.insert(0, (_number(overview.test[name]), f"{name} on test data"))
    if overview.elapsed_s is not None:
        tiles.append((seconds_in_words(overview.elapsed_s), "first start to last event"))
    if overview.epochs_trained:
        tiles.append((f"{overview.epochs_trained:,}", f"of {overview.epochs_unpruned:,} epochs trained"))
    inner = "".join(
        f'<div class="tile"><div class="value">{escape(value)}</div><div class="label">{escape(name)}</div></div>'
        for value, name in tiles
    )
    return f'<div class="key"><div class="card hero">{_hero(overview)}</div><div class="card tiles">{inner}</div></div>'


def summary(overview: Overview) -> str:
    """Return the study in a few sentences."""
    paragraphs = [" ".join(_result_sentences(overview)), " ".join(_course_sentences(overview))]
    return '<section class="lead">' + "".join(f"<p>{escape(text)}</p>" for text in paragraphs if text) + "</section>"


def best_configuration(trial: Trial, roles: Mapping[str, str]) -> str:
    """Return the best configuration as a table, grouped by role where roles are known.

    Args:
        trial: the best trial.
        roles: parameter name -> `architecture`, `training` or `data`; may be empty.
    """
    groups: dict[str, list[str]] = {}
    for name, value in trial.configuration.items():
        groups.setdefault(roles.get(name, ""), []).append(_setting(name, _plain(value)))
    tables = [
        f"<div>{f'<h3>{escape(role)}</h3>' if role else ''}"
        f'<table class="settings"><tbody>{"".join(rows)}</tbody></table></div>'
        for role, rows in groups.items()
    ]
    return f'<div class="groups">{"".join(tables)}</div>'


def guessing_sentence(overview: Overview) -> str | None:
    """Return what the best accuracy is to be compared with; None where it is another objective, or not known."""
    if overview.metric != "accuracy" or overview.majority_share is None or overview.balanced_accuracy is None:
        return None
    return (
        f"Always answering the largest class would reach {_number(overview.majority_share)}; "
        f"the balanced accuracy is {_number(overview.balanced_accuracy)}."
    )


def top_trials(snapshot: StudySnapshot, parameters: Sequence[str], most: int = 10) -> str:
    """Return a table of the best complete trials.

    Args:
        snapshot: the study.
        parameters: names of the parameters to show; those beyond `MOST_PARAMETERS` are left out.
        most: how many trials.
    """
    names = parameters[:MOST_PARAMETERS]
    heads = ["trial", snapshot.metric, "epochs", "time", *names]
    rows = [
        [
            str(trial.number),
            _number(value_of(trial)),
            str(trial.last_epoch),
            _duration(trial),
            *(_plain(trial.configuration[name]) if name in trial.configuration else "none" for name in names),
        ]
        for trial in snapshot.ranking[:most]
    ]
    return _table(heads, rows, numeric=range(len(heads)))


def failures(snapshot: StudySnapshot) -> str:
    """Return a table of the causes for which trials failed or were refused, with the last message of each."""
    by_cause: dict[tuple[str, str], list[Trial]] = {}
    for trial in snapshot.trials:
        if trial.state in (TrialState.FAILED, TrialState.INFEASIBLE):
            by_cause.setdefault((trial.state.value, trial.cause or "no cause stored"), []).append(trial)
    rows = [
        [
            cause,
            state,
            f"{len(trials):,}",
            listed([str(t.number) for t in trials], _MOST_NUMBERS),
            _message(trials),
        ]
        for (state, cause), trials in sorted(by_cause.items(), key=lambda item: -len(item[1]))
    ]
    return _table(["cause", "state", "count", "trials", "last message"], rows, numeric=[2])


def _hero(overview: Overview) -> str:
    if overview.best_value is None:
        return '<div class="value none">no result yet</div><div class="label">no trial is complete</div>'
    epoch = "" if overview.best_epoch is None else f", epoch {overview.best_epoch}"
    name = escape(overview.metric)
    return (
        f'<div class="value">{_number(overview.best_value)}</div>'
        f'<div class="label">best {name}<br>trial {overview.best_number}{epoch}</div>'
    )


def _result_sentences(overview: Overview) -> Iterable[str]:
    if overview.best_value is None:
        yield "No trial is complete, so there is no best configuration yet."
        if not overview.counts:
            yield "The study has no trials."
        return
    extreme = "highest" if overview.direction == "maximize" else "lowest"
    yield f"Trial {overview.best_number} reached the {extreme} {overview.metric}, {_number(overview.best_value)}."
    if overview.best_epoch is not None:
        yield f"It was at its best after epoch {overview.best_epoch}."
    if (sentence := guessing_sentence(overview)) is not None:
        yield sentence
    if overview.test:
        scores = [f"{name} {_number(score)}" for name, score in overview.test.items()]
        yield f"On the test data its model scores {listed(scores)}."
    else:
        yield "It has not been scored on test data."


def _course_sentences(overview: Overview) -> Iterable[str]:
    counts = [f"{count:,} {_STATE_WORDS[state]}" for state in TrialState if (count := overview.counts.get(state))]
    if counts:
        yield f"Of {counted(sum(overview.counts.values()), 'trial')}, {listed(counts, len(counts))}."
    if overview.imported:
        yield f"The search also learnt from {counted(overview.imported, 'imported trial')}, which no figure shows."
    if overview.causes:
        causes = [f"{cause} ({count:,})" for cause, count in overview.causes.items()]
        yield f"Causes of failure: {listed(causes)}."
    if overview.elapsed_s is not None:
        yield (
            f"{seconds_in_words(overview.elapsed_s)} passed from the first start to the last event; "
            f"the ended trials took {seconds_in_words(overview.trial_seconds)} in all."
        )
    if overview.epochs_trained:
        yield _epochs_sentence(overview)


def _epochs_sentence(overview: Overview) -> str:
    trained = f"{counted(overview.epochs_trained, 'epoch')} were trained"
    saved = overview.epochs_unpruned - overview.epochs_trained
    if saved <= 0:
        return f"{trained}; pruning saved none."
    share = saved / overview.epochs_unpruned
    return f"{trained}; it would have been {overview.epochs_unpruned:,} without pruning, which saved {share:.0%}."


_STATE_WORDS = {
    TrialState.QUEUED: "are queued",
    TrialState.RUNNING: "are running",
    TrialState.PAUSED: "are paused",
    TrialState.COMPLETE: "are complete",
    TrialState.PRUNED: "were pruned",
    TrialState.FAILED: "failed",
    TrialState.INFEASIBLE: "were refused as infeasible",
}


def _days(overview: Overview) -> str:
    if overview.started_at is None or overview.last_event_at is None:
        return ""
    start, end = overview.started_at, overview.last_event_at
    first = f"{start:%Y-%m-%d %H:%M}"
    last = f"{end:%H:%M}" if end.date() == start.date() else f"{end:%Y-%m-%d %H:%M}"
    return f"{first} UTC" if first.endswith(last) else f"{first} to {last} UTC"


def _message(trials: Sequence[Trial]) -> str:
    """The worker stores the text of an error under `error`; a refusal stores its reason there too."""
    messages = [trial.attributes.get("error") for trial in trials]
    texts = [message for message in messages if isinstance(message, str) and message.strip()]
    lines = texts[-1].strip().splitlines() if texts else []
    return lines[-1][:300] if lines else ""


def _duration(trial: Trial) -> str:
    seconds = duration_s(trial)
    return "" if seconds is None else seconds_in_words(seconds)


def _number(value: float) -> str:
    return f"{value:.4g}"


def _plain(value: object) -> str:
    return _number(value) if isinstance(value, float) else str(value)


def _setting(name: str, value: str) -> str:
    cell = f'<td class="number"><code>{escape(value)}</code></td>'
    return f'<tr><th scope="row">{escape(name)}</th>{cell}</tr>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numeric: Iterable[int]) -> str:
    right = set(numeric)
    head = "".join(f'<th{_class(i in right)} scope="col">{escape(text)}</th>' for i, text in enumerate(heads))
    body = "".join(
        f"<tr>{''.join(f'<td{_class(i in right)}>{escape(cell)}</td>' for i, cell in enumerate(row))}</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _class(is_number: bool) -> str:
    return ' class="number"' if is_number else ""
