from collections.abc import Mapping
from pathlib import Path

import pytest

from automl.continuation import continued, stored_form
from automl.errors import InvalidSpecError
from automl.spec import SearchSpec, read_yaml


def problems_of(**fields: object) -> str:
    with pytest.raises(InvalidSpecError) as caught:
        SearchSpec.from_mapping(fields, "the command line")
    return str(caught.value)


def test_spec_space_alone_is_enough() -> None:
    spec = SearchSpec.from_mapping({"space": "nas_small"}, "test")
    assert spec.study == "nas_small-digits"
    assert spec.direction == "maximize"
    assert spec.data.source == "digits"
    assert spec.storage == "sqlite:///automl-runs/studies.db"


def test_spec_all_mistakes_are_listed_at_once_with_the_nearest_names() -> None:
    text = problems_of(
        space="nas_smal", data="digitz", trials="abc", sampler="tpee", pruner="ahsa", metric="acuracy", epoch=3
    )
    assert text.startswith("7 mistakes in the command line:")
    for hint in ("'nas_small'", "'digits'", "'abc'", "'tpe'", "'asha'", "'accuracy'", "'epochs'"):
        assert hint in text


@pytest.mark.parametrize(
    "field, value",
    [
        ("trials", 0), ("trials", "1.5"), ("timeout", -1), ("timeout", float("nan")), ("epochs", 0), ("seed", -1),
        ("concurrency", 0), ("concurrency", "many"), ("procs_per_trial", 0), ("precision", "fp8"),
        ("executor", "slurm"), ("direction", "up"), ("target_value", "high"), ("max_failures", 0),
    ],
)  # fmt: skip
def test_spec_wrong_value_is_named_with_its_field(field: str, value: object) -> None:
    text = problems_of(space="nas_small", **{field: value})
    assert text.startswith("1 mistake ")
    assert field.replace("_", "-") in text
    assert str(value) in text


def test_spec_numbers_may_come_as_text() -> None:
    spec = SearchSpec.from_mapping({"space": "nas_small", "trials": "7", "concurrency": "2", "timeout": "1.5"}, "test")
    assert (spec.trials, spec.concurrency, spec.timeout) == (7, 2, 1.5)


def test_spec_minimised_metric_knows_its_direction() -> None:
    assert SearchSpec.from_mapping({"space": "nas_small", "metric": "loss"}, "test").direction == "minimize"


def test_spec_inline_executor_refuses_several_ranks() -> None:
    assert "inline" in problems_of(space="nas_small", procs_per_trial=2, executor="inline")


def test_spec_ranks_do_not_share_gpus_unevenly() -> None:
    assert "gpus-per-trial" in problems_of(space="nas_small", procs_per_trial=2, gpus_per_trial=1)


def test_spec_single_rank_may_share_a_gpu() -> None:
    spec = SearchSpec.from_mapping({"space": "nas_small", "gpus_per_trial": "0.25"}, "test")
    assert spec.gpus_per_trial == 0.25
    assert "a share of one" in problems_of(space="nas_small", gpus_per_trial=1.5)


def test_spec_memory_is_read_in_words() -> None:
    assert SearchSpec.from_mapping({"space": "nas_small", "memory_per_trial": "2GiB"}, "test").memory_per_trial == 2**31
    assert "8GiB" in problems_of(space="nas_small", memory_per_trial="much")


def test_spec_inline_executor_cannot_limit_the_time_of_a_trial() -> None:
    assert "--executor ray" in problems_of(space="nas_small", executor="inline", trial_timeout=5)


def test_spec_data_may_be_a_mapping_and_its_unknown_keys_are_named() -> None:
    spec = SearchSpec.from_mapping({"space": "nas_small", "data": {"source": "digits", "split_seed": 3}}, "test")
    assert spec.data.split_seed == 3
    assert "'split_seed'" in problems_of(space="nas_small", data={"source": "digits", "split_sed": 3})


@pytest.mark.parametrize(
    "content, hint",
    [
        (b"space: nas_small\n  trials: 3\n", "line 2"),
        (b"- a\n- b\n", "a list"),
        (b"just words", "plain text"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"space: [nas_small", "not valid YAML"),
    ],
    ids=["indentation", "list", "text", "binary", "unclosed"],
)
def test_read_yaml_broken_file_is_refused_with_place_and_reason(tmp_path: Path, content: bytes, hint: str) -> None:
    file = tmp_path / "search.yaml"
    file.write_bytes(content)
    with pytest.raises(InvalidSpecError) as caught:
        read_yaml(file)
    assert str(file) in str(caught.value)
    assert hint in str(caught.value)


def test_read_yaml_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpecError, match="No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_read_yaml_field_names_may_be_written_as_flags(tmp_path: Path) -> None:
    file = tmp_path / "search.yaml"
    file.write_text("space: nas_small\nprocs-per-trial: 2\n")
    assert read_yaml(file) == {"space": "nas_small", "procs_per_trial": 2}
    file.write_text("")
    assert read_yaml(file) == {}


def go_on(stored: Mapping[str, object], **explicit: object) -> SearchSpec:
    fields = {"space": "nas_small", **explicit}
    return continued(stored, SearchSpec.from_mapping(fields, "test"), fields)


def test_continued_study_keeps_what_is_not_given_and_takes_what_is() -> None:
    first = SearchSpec.from_mapping({"space": "nas_small", "seed": 5, "trials": 10, "timeout": 60}, "test")
    second = go_on(stored_form(first), trials=15)
    assert (second.seed, second.trials, second.timeout) == (5, 15, None)


def test_continued_study_refuses_what_makes_trials_incomparable() -> None:
    stored = stored_form(SearchSpec.from_mapping({"space": "nas_small"}, "test"))
    with pytest.raises(InvalidSpecError) as caught:
        go_on(stored, direction="minimize", epochs=3, seed=1)
    text = str(caught.value)
    assert text.startswith("3 mistakes")
    assert "'maximize'" in text and "'minimize'" in text


def test_stored_form_has_no_places_and_no_secrets() -> None:
    spec = SearchSpec.from_mapping(
        {"space": "nas_small", "storage": "postgresql://me:hunter2@host/db", "artifacts": "/nfs/runs"}, "test"
    )
    assert "hunter2" not in str(stored_form(spec))
    assert "/nfs" not in str(stored_form(spec))


@pytest.mark.parametrize(
    "field, value",
    [
        ("spread", True),
        ("memory_per_trial", "1GiB"),
        ("cpus_per_trial", 2),
        ("wait_for_nodes", 5),
        ("ray_address", "a:1"),
    ],
)
def test_spec_inline_executor_refuses_what_only_ray_can_do(field: str, value: object) -> None:
    assert "--executor ray" in problems_of(**{"space": "nas_small", "executor": "inline", field: value})
