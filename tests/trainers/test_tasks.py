import importlib.metadata

import pytest

from trainers import tasks
from trainers.errors import InvalidTrainerError, UnknownTrainerError
from trainers.tasks import available, load_trainer
from trainers.tasks.image_classification import ImageClassification


def test_every_available_trainer_loads() -> None:
    assert "image_classification" in available()
    for name in available():
        assert load_trainer(name).metrics


def test_reference_may_be_an_import_path() -> None:
    trainer = load_trainer("trainers.tasks.image_classification:ImageClassification")
    assert isinstance(trainer, ImageClassification)


def test_unknown_name_is_answered_with_the_nearest_and_all() -> None:
    with pytest.raises(UnknownTrainerError) as caught:
        load_trainer("image_clasification")
    assert str(caught.value) == (
        "no trainer 'image_clasification'; did you mean 'image_classification'? "
        f"available: {', '.join(available())}, or module:Class, or the path of a .py file"
    )


@pytest.mark.parametrize("reference", ["", "nowhere:Trainer", "no.such.module:Trainer", "not an identifier:X", ":X"])
def test_reference_to_nothing_is_unknown(reference: str) -> None:
    with pytest.raises(UnknownTrainerError):
        load_trainer(reference)


@pytest.mark.parametrize("reference", ["trainers.config:TrainConfig", "trainers.config:Nothing", "trainers.config:"])
def test_reference_to_something_else_is_invalid(reference: str) -> None:
    with pytest.raises(InvalidTrainerError, match="needed: a subclass of Trainer"):
        load_trainer(reference)


def test_entry_points_add_trainers_and_may_not_take_our_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def offer(name: str) -> None:
        target = "trainers.tasks.image_classification:ImageClassification"
        point = importlib.metadata.EntryPoint(name, target, tasks.ENTRY_POINT_GROUP)
        monkeypatch.setattr(tasks, "entry_points", lambda group: {name: point})

    offer("theirs")
    assert "theirs" in available()
    assert isinstance(load_trainer("theirs"), ImageClassification)
    offer("image_classification")
    with pytest.raises(InvalidTrainerError, match="names of our own: image_classification"):
        available()
