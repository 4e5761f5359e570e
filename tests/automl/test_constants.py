"""`--set` in the place of a parameter that the space searches: everything about the study leaves it out."""

from pathlib import Path
from typing import Any

import pytest

from automl import api
from automl.cli.outcome import print_outcome
from automl.configuration_text import row_of_words
from automl.continuation import present_space
from automl.errors import InvalidSpecError
from automl.queueing import enqueue
from tests.trainers.custom.own import write

SPACE = """
    from search_spaces import Categorical, Integer, SearchSpace
    SPACE = SearchSpace(
        "flat",
        {
            "width": Integer(low=1, high=8, role="architecture"),
            "optimizer": Categorical(choices=("sgd", "adam")),
            "batch_size": Categorical(choices=(64, 128)),
        },
        defaults={"width": 2, "optimizer": "adam", "batch_size": 128},
        refuse=lambda known: "odd" if known["width"] % 2 and known["optimizer"] == "sgd" else None,
    )
    def build_model(configuration, input_shape, num_classes):
        from torch import nn
        width = SPACE.validate(configuration)["width"]
        return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.Linear(width, num_classes))
    """


def test_study_searches_stores_and_goes_on_without_what_a_constant_replaces(
    storage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields: dict[str, Any] = {
        "space": str(write(tmp_path, "flat.py", SPACE)), "storage": storage, "study": "flat", "executor": "inline"
    }  # fmt: skip
    first = api.search(**fields, trials=1, epochs=1, max_params=100_000, set={"optimizer": "muon"})
    assert first.exit_code == 0
    print_outcome(first)
    out = capsys.readouterr().out
    assert "study 'flat': the only trial ended; 1 complete" in out
    assert "  set: optimizer=muon\n" in out
    study = first.study
    assert set(study.space_versions()[-1]["parameters"]) == {"width", "batch_size"}
    assert study.trials()[0].configuration == {"width": 2, "batch_size": 128}
    assert present_space(study).changes == ()

    enqueue(study, [row_of_words(["width=3"])])
    with pytest.raises(InvalidSpecError, match="no parameter 'optimizer'"):
        enqueue(study, [row_of_words(["optimizer=adam"])])
    more = api.resume("flat", storage=storage, trials=2)
    assert [trial.state.value for trial in more.study.trials()] == ["complete", "complete"]
    assert len(study.space_versions()) == 1
    with pytest.raises(InvalidSpecError, match="set: study 'flat' has optimizer=muon, but optimizer=lion was given"):
        api.search(**fields, trials=3, epochs=1, set={"optimizer": "lion"})
