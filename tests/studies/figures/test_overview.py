import json
from dataclasses import replace

import pytest

from studies.figures.overview import overview_of
from studies.figures.sections import guessing_sentence, summary
from studies.figures.snapshot import StudySnapshot, snapshot_of
from studies.figures.words import counted, listed, seconds_in_words
from studies.trial import TrialState
from tests.studies.figures.examples import ordinary_study, snapshot, trial
from tests.studies.figures.odd_studies import ODD_STUDIES


def test_epochs_without_pruning_are_those_of_the_longest_complete_trial() -> None:
    complete = trial(0, value=0.1, reports={epoch: 0.1 for epoch in range(1, 9)})
    pruned = trial(1, TrialState.PRUNED, reports={1: 0.5, 2: 0.4})
    failed = trial(2, TrialState.FAILED, reports={1: 0.5}, cause="oom")
    overview = overview_of(snapshot(complete, pruned, failed))
    assert overview.epochs_trained == 8 + 2 + 1
    assert overview.epochs_unpruned == 8 + 8 + 1


def test_sums_of_an_ordinary_study() -> None:
    study = snapshot_of(ordinary_study(60))
    overview = overview_of(study)
    assert sum(overview.counts.values()) == 60
    assert overview.causes == {"oom": overview.counts[TrialState.FAILED]}
    assert overview.best_value == max(trial.value for trial in study.complete if trial.value is not None)
    assert overview.test == {"accuracy": 0.9694, "balanced accuracy": 0.9671}
    assert overview.elapsed_s is not None
    assert 0 < overview.elapsed_s < overview.trial_seconds


def test_best_accuracy_is_shown_beside_what_guessing_reaches() -> None:
    facts = {"majority_share": 0.99, "balanced_accuracy": 0.5}
    best = replace(trial(0, value=0.99), attributes=facts)
    study = replace(snapshot(best, direction="maximize"), metric="accuracy")
    sentence = "Always answering the largest class would reach 0.99; the balanced accuracy is 0.5."
    assert guessing_sentence(overview_of(study)) == sentence
    assert sentence in summary(overview_of(study))
    assert guessing_sentence(overview_of(replace(study, metric="auc"))) is None
    assert guessing_sentence(overview_of(snapshot(trial(0, value=0.99)))) is None


def test_test_score_of_a_former_best_trial_is_not_shown() -> None:
    study = snapshot(trial(0, value=0.5), trial(1, value=0.4))
    for number, expected in ((1, {"accuracy": 0.9}), (0, {})):
        stored = {"test": {"trial": number, "metrics": {"accuracy": 0.9}}}
        assert overview_of(replace(study, attributes=stored)).test == expected


@pytest.mark.parametrize("study", ODD_STUDIES.values(), ids=ODD_STUDIES.keys())
def test_json_of_an_odd_study_is_strict(study: StudySnapshot) -> None:
    text = json.dumps(overview_of(study).to_json(), allow_nan=False)
    assert json.loads(text)["study"] == "odd"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (9.9, "9.9 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (110, "1 min 50 s"), (7500, "2 h 05 min")],
)
def test_seconds_in_words(seconds: float, words: str) -> None:
    assert seconds_in_words(seconds) == words


def test_seconds_in_words_of_days() -> None:
    assert seconds_in_words(3 * 86_400 + 4 * 3600 + 59) == "3 d 4 h"


def test_words_count_and_list() -> None:
    assert [counted(n, "trial") for n in (0, 1, 1200)] == ["0 trials", "1 trial", "1,200 trials"]
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdefgh"), most=3) == "a, b, c and 5 more"
