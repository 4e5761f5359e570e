import sys
from pathlib import Path

import pytest

from tests.trainers.custom.own import write
from trainers.custom.command import Command
from trainers.custom.directions import well_known_direction
from trainers.errors import InvalidTrainerError, MistakeElsewhereError


def test_parameters_take_their_places_and_the_others_follow(tmp_path: Path) -> None:
    command = Command.parse(f"cd {tmp_path} && {sys.executable} -c 'print({{x}}, {{y}}, {{z}})' --seed={{seed}}")
    words = command.filled({"x": 0.5, "deep": True, "name": None, "text": "a b"}, {"seed": "7"})
    assert words[1:] == [
        "-c", "print(0.5, {y}, {z})", "--seed=7", "--deep", "true", "--name", "none", "--text", "a b"
    ]  # fmt: skip


def test_braces_that_are_no_place_stay_as_they_are(tmp_path: Path) -> None:
    texts = ['{"a": {"b": 1}}', "${HOME}", "{print $1}", "a{2,3}", "{}", "{ x }", "{{x}}", "x={x}"]
    command = Command(words=tuple(texts), folder=tmp_path)
    command.check_places(["x"])
    assert command.filled({"x": 1}, {}) == [*texts[:6], "{x}", "x=1"]


def test_all_places_without_a_parameter_are_refused_at_once_with_the_nearest_names(tmp_path: Path) -> None:
    command = Command(words=("python", "--rate={lerning_rate}", "{deep}", "{epochs}", "{deep}"), folder=tmp_path)
    with pytest.raises(MistakeElsewhereError) as caught:
        command.check_places(["learning_rate", "width"])
    assert caught.value.place == "script"
    assert str(caught.value) == (
        "no parameter 'lerning_rate' for {lerning_rate}, did you mean 'learning_rate'?; "
        "no parameter 'deep' for {deep}; "
        "places: data, epochs, learning_rate, seed, width; {{lerning_rate}} is passed on as {lerning_rate}"
    )


def test_command_reads_as_it_is_written(tmp_path: Path) -> None:
    command = Command.parse(f"cd '{tmp_path}' && {sys.executable} -c 'a b'")
    assert command.folder == tmp_path
    assert Command.parse(str(command)) == command


def test_command_without_a_folder_runs_where_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "train.py", "x = 1")
    assert str(Command.parse(f"{sys.executable} train.py")).startswith(f"cd {tmp_path} && ")


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "names no program"),
        ("python 'a", "no closing quotation"),
        ("cd /no/such/folder && python x.py", "no folder /no/such/folder"),
        ("no-such-program nowhere.py", "no program 'no-such-program' that can be run; there is no file"),
    ],
)
def test_command_that_cannot_run_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidTrainerError, match=words):
        Command.parse(text)


def test_digest_follows_the_files_that_are_named(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "x = 1")
    command = Command.parse(f"cd {tmp_path} && {sys.executable} train.py")
    before = command.digest()
    write(tmp_path, "train.py", "x = 2")
    assert command.digest() != before


@pytest.mark.parametrize(
    "metric, direction",
    [("val_loss", "minimize"), ("Accuracy", "maximize"), ("test_r2", "maximize"), ("RMSE", "minimize"), ("kpi", None)],
)
def test_direction_of_a_well_known_name(metric: str, direction: str | None) -> None:
    assert well_known_direction(metric) == direction
