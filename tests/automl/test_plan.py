"""What no trial of a search could do is refused with the data at hand, and before anything is started."""

from pathlib import Path

import pytest

from automl import api
from automl.errors import InvalidSpecError
from automl.plan import plan_mistakes
from automl.spec import SearchSpec
from studies.errors import StudyNotFoundError
from studies.storage import Storage
from tests.trainers.custom.own import write

CHAIN = "tests.trainers.parallel.chain_space"
NO_CHAIN = """
    from torch import nn
    from search_spaces import Integer, SearchSpace
    SPACE = SearchSpace("free", {"width": Integer(low=4, high=8, role="architecture")})
    class Free(nn.Module):
        def __init__(self, width, classes):
            super().__init__()
            self.first, self.last = nn.Linear(64, width), nn.Linear(width, classes)
        def forward(self, images):
            return self.last(self.first(images.flatten(1)))
    def build_model(configuration, input_shape, num_classes):
        return Free(configuration["width"], num_classes)
    """


def mistakes(**fields: object) -> list[str]:
    spec = SearchSpec.from_mapping(fields, "a test")
    trainer = spec.make_trainer()
    return plan_mistakes(spec, trainer, trainer.load(spec.data))


def test_search_whose_networks_are_no_chains_is_refused_and_leaves_nothing(tmp_path: Path, storage: str) -> None:
    space = str(write(tmp_path, "free.py", NO_CHAIN))
    with pytest.raises(InvalidSpecError, match="needs a chain of layers, and Free may call its own in any way"):
        api.search(space=space, storage=storage, study="free", procs_per_trial=2, parallel="pipeline")
    with pytest.raises(StudyNotFoundError):
        Storage(storage).open_study("free")
    assert mistakes(space=space, procs_per_trial=2) == []


def test_space_in_which_some_networks_can_be_cut_is_searched() -> None:
    assert mistakes(space=CHAIN, procs_per_trial=2, parallel="pipeline") == []
    (sentence,) = mistakes(space=CHAIN, procs_per_trial=9, parallel="pipeline")
    assert "parallel=pipeline" in sentence


def test_search_with_a_teacher_of_nobody_is_refused(tmp_path: Path, storage: str) -> None:
    write(tmp_path, "rows.csv", "a,b\n1,2\n")
    for teacher, words in (("rows.csv", "this file is no checkpoint of ours"), ("no.pt", "there is no such file")):
        with pytest.raises(InvalidSpecError, match=words):
            api.search(space="nas_small", storage=storage, set={"teacher": str(tmp_path / teacher)})
