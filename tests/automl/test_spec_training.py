"""What a specification says about who trains: trainer, script, constants, objective and data."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from automl.artifacts import Artifacts
from automl.continuation import continued, stored_form
from automl.errors import InvalidSpecError
from automl.inheritance import Origin
from automl.spec import SearchSpec
from automl.tasks import train_task
from search_spaces.configuration import Configuration
from studies.trial import Lease
from tests.trainers.custom.own import write

ROOT = Path(__file__).resolve().parents[2]
OWN_FIT = """
    from search_spaces import Float, SearchSpace
    SPACE = SearchSpace("own", {"x": Float(low=0.0, high=1.0)})
    METRICS = {"gain": "maximize", "cost": "minimize"}
    def fit(context):
        context.report({"gain": context.configuration["x"]})
    """
SPACE_ALONE = """
    from search_spaces import Float, SearchSpace
    SPACE = SearchSpace("alone", {"x": Float(low=0.0, high=1.0)})
    """


def spec_of(**fields: Any) -> SearchSpec:
    return SearchSpec.from_mapping(fields, "the command line")


def problems_of(**fields: Any) -> str:
    with pytest.raises(InvalidSpecError) as caught:
        spec_of(**fields)
    return str(caught.value)


def script_of(folder: Path) -> str:
    write(folder, "train.py", "print(1)")
    return f"{sys.executable} {folder / 'train.py'}"


def test_space_names_its_trainer_and_the_trainer_its_objective() -> None:
    spec = spec_of(space="nas_small")
    assert (spec.trainer, spec.trainer_reference) == ("image_classification", "image_classification")
    assert (spec.metric, spec.direction, spec.parallel) == ("accuracy", "maximize", "auto")


def test_space_in_a_file_that_trains_needs_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "own.py", OWN_FIT)
    monkeypatch.chdir(tmp_path)
    spec = spec_of(space="own.py")
    assert spec.space == spec.trainer == str(file)
    assert (spec.metric, spec.direction, spec.study) == ("gain", "maximize", "own-digits")
    assert spec_of(space="own.py", metric="cost").direction == "minimize"
    assert "did you mean 'cost'?" in problems_of(space="own.py", metric="costs")


def test_trainer_may_be_another_file(tmp_path: Path) -> None:
    space, trainer = write(tmp_path, "space.py", SPACE_ALONE), write(tmp_path, "own.py", OWN_FIT)
    assert spec_of(space=str(space), trainer=str(trainer)).trainer == str(trainer)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"trainer": "nowhere.py"}, "no trainer '.*nowhere.py'; there is no such file"),
        ({"trainer": "image_clasification"}, "did you mean 'image_classification'?"),
        ({"trainer": "image_classification"}, "has no hyperparameter 'x'"),
        ({"script": "no-such-program x"}, "no program 'no-such-program'"),
        ({"script": f"{sys.executable} -c 1", "trainer": "image_classification"}, "there is a script besides"),
        ({"script": f"{sys.executable} -c 1"}, "metric: must be given"),
        ({"script": f"{sys.executable} -c 1", "metric": "kpi"}, "direction: must be given: whether a larger 'kpi'"),
        ({"script": f"{sys.executable} -c 1", "metric": "loss", "procs_per_trial": 2}, "a script is one process"),
        ({"script": f"{sys.executable} -c 1", "metric": "loss", "parallel": "fsdp"}, "parallel: fsdp is for networks"),
        ({"script": f"{sys.executable} -c 1", "metric": "loss", "max_params": 9}, "has no networks"),
    ],
)
def test_trainer_that_cannot_be_is_refused_alone(tmp_path: Path, fields: dict[str, Any], words: str) -> None:
    text = problems_of(space=str(write(tmp_path, "space.py", SPACE_ALONE)), **fields)
    assert text.startswith("1 mistake ")

    assert re.search(words, text), text


def test_space_without_a_network_is_refused_for_a_trainer_of_networks(tmp_path: Path) -> None:
    text = SPACE_ALONE.replace('"x"', '"learning_rate"')
    told = problems_of(space=str(write(tmp_path, "space.py", text)))
    assert "space.py defines nothing to train: needed: build_model(" in told and "did you mean" not in told


def test_training_under_a_misspelt_name_is_told_by_its_file(tmp_path: Path) -> None:
    text = problems_of(
        space=str(write(tmp_path, "own.py", OWN_FIT.replace("fit(", "fitt(").replace('"x"', '"momentum"')))
    )
    assert text.startswith("1 mistake ") and "trainer: own.py defines nothing to train: needed: " in text
    assert text.endswith(
        "or fit(context), or datasets(source) for a network of the search space; did you mean 'fit'? it defines 'fitt'"
    )


def test_place_of_a_script_without_a_parameter_is_refused(tmp_path: Path) -> None:
    space, script = str(write(tmp_path, "space.py", SPACE_ALONE)), script_of(tmp_path)
    text = problems_of(space=space, script=f"{script} {{xx}} {{deep}} {{patience}}", metric="loss", set={"patience": 2})
    assert text.startswith("1 mistake ") and "script: no parameter 'xx' for {xx}" in text
    assert "no parameter 'deep'" in text and "no parameter 'patience'" in text
    spec_of(space=space, script=f"{script} {{x}} {{seed}} {{deep}}", metric="loss", set={"deep": True})


OWN_DATASETS = """
    import torch
    from search_spaces import Float, SearchSpace
    SPACE = SearchSpace("own", {"learning_rate": Float(low=0.001, high=0.1)})
    class Items:
        def __len__(self):
            return LENGTH
        def __getitem__(self, item):
            return torch.zeros(2), 1 // (item - 7) > 0
    def datasets(source):
        return Items(), Items()
    def build_model(configuration):
        return torch.nn.Linear(2, 2)
    """


@pytest.mark.parametrize(
    "length, words",
    [(9, "own file: own.py, line 9: ZeroDivisionError: "), (0, "own file: own.py: there are no train items")],
)
def test_fault_of_own_datasets_is_told_once_and_as_one_of_the_file(tmp_path: Path, length: int, words: str) -> None:
    file = write(tmp_path, "own.py", OWN_DATASETS.replace("LENGTH", str(length)))
    text = problems_of(space=str(file), set={"patience": 2})
    assert text.startswith("1 mistake ") and words in text and text.count("own.py") == 1


def test_script_may_report_any_metric_and_runs_where_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = str(write(tmp_path, "space.py", SPACE_ALONE))
    monkeypatch.chdir(tmp_path)
    spec = spec_of(space=space, script=script_of(tmp_path), metric="val_loss")
    assert (spec.direction, spec.trainer) == ("minimize", None)
    assert spec.script is not None and spec.script.startswith(f"cd {tmp_path} && ")
    assert spec_of(space=space, script=spec.script, metric="kpi", direction="maximize").metric == "kpi"


def test_constants_become_what_the_parameters_are_and_reach_the_training() -> None:
    spec = spec_of(space="nas_small", set={"patience": "3", "compile": "true", "loss": "focal"})
    assert spec.set == {"patience": 3, "compile": True, "loss": "focal"}
    defaults = spec.search_space.defaults
    assert defaults is not None
    lease = Lease(trial_id=1, number=0, attempt=1, owner="me")
    task = train_task(spec, Artifacts(root="/a", study="s"), lease, defaults, Origin())
    assert (task.training.patience, task.training.compile, task.training.loss) == (3, True, "focal")
    assert task.configuration == dict(defaults)


def test_all_mistakes_in_constants_are_listed() -> None:
    text = problems_of(
        space="nas_small",
        set={"channels": 16, "patiense": 3, "momentum": "high", "warmup_fraction": 2, "optimizer": "moun", "epochs": 3},
    )
    for words in (
        "channels is searched by the space 'nas_small', and of the architecture: only parameters of the training",
        "optimizer='moun' is not allowed",
        "did you mean 'patience'?",
        "momentum='high'",
        "warmup_fraction=2",
        "epochs has a flag of its own: --epochs",
    ):
        assert words in text


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"space": "nas_small", "set": {"loss": "mse"}}, "set: loss 'mse' is not for classes"),
        ({"space": "nas_small", "set": {"teacher": "/nowhere/t.pt"}}, "set: teacher='/nowhere/t.pt': there is no such"),
        ({"space": "tabular_mlp", "data": "diabetes", "set": {"loss": "focal"}}, "set: loss 'focal' is not for"),
        ({"space": "tabular_mlp", "data": "iris", "set": {"mixup": 0.2}}, "set: no training parameter 'mixup'"),
        (
            {"space": "nas_small", "set": {"schedule_power": 3}},
            "set: schedule_power has no effect with schedule=cosine",
        ),
        (
            {"space": "nas_small", "set": {"momentum": 0.5, "optimizer": "lion"}},
            "set: momentum has no effect with optimizer=lion; give optimizer=sgd, rmsprop or muon",
        ),
        (
            {"space": "nas_small", "set": {"learning_rate": "1e400"}},
            "set: learning_rate='1e400' is not allowed: input should be a finite number",
        ),
        ({"space": "nas_small", "parallel": "pipeline"}, "parallel: pipeline shares a network among ranks, and here"),
        ({"space": "nas_small", "set": {"gradient_compression": "bf16"}}, "bf16 is for where ranks exchange gradients"),
        (
            {"space": "nas_small", "set": {"gradient_compression": "bf16"}, "parallel": "fsdp", "procs_per_trial": 2},
            "gradient_compression=bf16 is for parallel=ddp",
        ),
        ({"space": "nas_small", "set": {"accumulate": 5000}}, "accumulate=5000 cuts a batch of"),
        ({"space": "nas_small", "data": {"target": "x"}}, "data: --target means nothing for a data set of images"),
    ],
)
def test_what_the_task_cannot_do_is_refused_alone(fields: dict[str, Any], words: str) -> None:
    text = problems_of(**fields)
    assert text.startswith("1 mistake ")
    assert words in text


def test_space_that_offers_what_the_task_cannot_do_is_refused(tmp_path: Path) -> None:
    text = """
        from search_spaces import Categorical, SearchSpace
        SPACE = SearchSpace("mine", {"loss": Categorical(choices=("focal", "mse"))})
        def build_model(configuration, input_shape, num_classes):
            raise NotImplementedError
        """
    assert "space 'mine': loss 'mse' is not for classes" in problems_of(space=str(write(tmp_path, "space.py", text)))


def test_constants_of_own_code_stand_in_its_configuration(tmp_path: Path) -> None:
    space = str(write(tmp_path, "own.py", OWN_FIT))
    spec = spec_of(space=space, set={"depth": "3", "name": "deep", "fast": "true", "rate": "1e-3", "patience": 2})
    lease = Lease(trial_id=1, number=0, attempt=1, owner="me")
    task = train_task(spec, Artifacts(root="/a", study="s"), lease, Configuration({"x": 0.5}), Origin())
    assert task.configuration == {"depth": 3, "name": "deep", "fast": True, "rate": 0.001, "x": 0.5}
    assert task.training.patience == 2
    assert "nothing is left to search: all parameters of the space 'own'" in problems_of(space=space, set={"x": "1"})
    assert "x='2' is outside [0.0, 1.0] (space 'own')" in problems_of(space=space, set={"x": "2"})
    assert "precision has a flag of its own: --precision" in problems_of(space="nas_small", set={"precision": "bf16"})


def test_constant_takes_the_place_of_a_searched_parameter_of_the_training() -> None:
    spec = spec_of(space="nas_small", set={"optimizer": "muon", "batch_size": "32", "learning_rate": "0.5"})
    assert set(spec.whole_space.names()) - set(spec.search_space.names()) == set(spec.set)
    defaults = spec.search_space.defaults
    assert defaults is not None
    lease = Lease(trial_id=1, number=0, attempt=1, owner="me")
    task = train_task(spec, Artifacts(root="/a", study="s"), lease, defaults, Origin())
    assert (task.training.optimizer, task.training.batch_size, task.training.learning_rate) == ("muon", 32, 0.5)
    assert spec.whole_space.validate(task.configuration)["batch_size"] == 32, "what builds the network is given it all"
    assert task.configuration["optimizer"] == "adamw", "what the space knows stands for what it does not"
    assert (task.asked_for()["optimizer"], task.built_with()["optimizer"]) == ("muon", "adamw")
    assert "batch_size" not in task.built_with(), "the space knows it"


def test_constant_of_own_code_takes_the_place_of_a_searched_parameter(tmp_path: Path) -> None:
    text = OWN_FIT.replace('"x":', '"y": Float(low=0.0, high=1.0), "x":')
    spec = spec_of(space=str(write(tmp_path, "own.py", text)), set={"x": "1"})
    assert spec.search_space.names() == ("y",)
    lease = Lease(trial_id=1, number=0, attempt=1, owner="me")
    task = train_task(spec, Artifacts(root="/a", study="s"), lease, Configuration({"y": 0.5}), Origin())
    assert task.configuration == {"x": 1.0, "y": 0.5}


def test_first_choice_stands_for_a_constant_that_a_space_without_defaults_does_not_know(tmp_path: Path) -> None:
    text = """
        from search_spaces import Categorical, Float, SearchSpace
        optimizers = Categorical(choices=("sgd", "adam"))
        SPACE = SearchSpace("mine", {"optimizer": optimizers, "learning_rate": Float(low=0.001, high=0.1)})
        def build_model(configuration, input_shape, num_classes):
            raise NotImplementedError
        """
    spec = spec_of(space=str(write(tmp_path, "space.py", text)), set={"optimizer": "muon"})
    assert spec.search_space.names() == ("learning_rate",)
    lease = Lease(trial_id=1, number=0, attempt=1, owner="me")
    task = train_task(spec, Artifacts(root="/a", study="s"), lease, Configuration({"learning_rate": 0.05}), Origin())
    assert task.training.optimizer == "muon"
    assert spec.whole_space.validate(task.configuration) == {"optimizer": "sgd", "learning_rate": 0.05}


def test_own_code_may_search_names_of_ours_with_values_of_its_own(tmp_path: Path) -> None:
    sizes = '"batch_size": Categorical(choices=("small", "big")), "x":'
    text = OWN_FIT.replace('"x":', sizes).replace("Float,", "Categorical, Float,")
    assert spec_of(space=str(write(tmp_path, "own.py", text))).search_space.names() == ("batch_size", "x")
    alone = SPACE_ALONE.replace('"x":', sizes).replace("Float,", "Categorical, Float,")
    spec = spec_of(space=str(write(tmp_path, "space.py", alone)), script=script_of(tmp_path), metric="loss")
    assert spec.search_space.names() == ("batch_size", "x")


def test_places_of_data_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "own.py", OWN_FIT)
    write(tmp_path, "rows.csv", "a,b\n1,2\n")
    monkeypatch.chdir(tmp_path)
    spec = spec_of(space="own.py", data={"source": "rows.csv", "test_source": "rows.csv", "target": "b"})
    assert spec.data.source == spec.data.test_source == str(tmp_path / "rows.csv")
    assert spec_of(space="own.py", data="a name of anything").data.source == "a name of anything"


def go_on(first: SearchSpec, **explicit: Any) -> SearchSpec:
    return continued(stored_form(first), spec_of(**explicit), explicit)


def test_study_goes_on_with_its_trainer_and_constants_alone(tmp_path: Path) -> None:
    space = str(write(tmp_path, "own.py", OWN_FIT))
    first = spec_of(space=space, set={"depth": 3})
    assert go_on(first, space=space, trials=50).set == {"depth": 3}
    other = write(tmp_path, "other.py", OWN_FIT)
    for field, value in (("trainer", str(other)), ("script", f"{sys.executable} -c 1"), ("set", {"depth": 4})):
        with pytest.raises(InvalidSpecError, match=f"{field}: study 'own-digits' has"):
            go_on(first, space=space, metric="gain", direction="maximize", **{field: value})


def test_study_goes_on_where_its_files_have_moved(tmp_path: Path) -> None:
    first = spec_of(space=str(write(tmp_path / "before", "own.py", OWN_FIT)))
    moved = str(write(tmp_path / "after", "own.py", OWN_FIT))
    assert go_on(first, space=moved).trainer_reference == moved
    space = str(write(tmp_path, "space.py", SPACE_ALONE))
    first = spec_of(space=space, script=script_of(tmp_path / "before"), metric="loss")
    script = script_of(tmp_path / "after")
    assert "after" in str(go_on(first, space=space, script=script, metric="loss").script)
    with pytest.raises(InvalidSpecError, match="script: study"):
        go_on(first, space=space, script=f"{script} --fast", metric="loss")


def test_study_of_an_older_release_takes_the_trainer_of_its_space() -> None:
    stored = {
        key: value for key, value in stored_form(spec_of(space="nas_small")).items() if key not in ("trainer", "set")
    }
    explicit = {"space": "nas_small", "trials": 3}
    assert continued(stored, spec_of(**explicit), explicit).trainer == "image_classification"
