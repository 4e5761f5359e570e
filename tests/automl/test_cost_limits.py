"""Searches that refuse networks that cost too much, or cannot be built."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from automl import api
from automl.cost_limits import CostLimits
from automl.errors import InvalidSpecError
from automl.session import SearchOutcome
from automl.spec import SearchSpec
from search_spaces.catalog import nas_small
from search_spaces.configuration import Configuration
from studies.trial import TrialState

FIELDS: dict[str, Any] = {
    "space": "nas_small",
    "epochs": 1,
    "executor": "inline",
    "sampler": "random",
    "pruner": "none",
}


def spec_of(most: object, **more: Any) -> SearchSpec:
    return SearchSpec.from_mapping({**FIELDS, "max_params": most, **more}, "a test")


@pytest.fixture
def search(tmp_path: Path) -> Callable[..., SearchOutcome]:
    def run(**more: Any) -> SearchOutcome:
        return api.search(**{**FIELDS, **more}, study="small", storage=f"sqlite:///{tmp_path}/studies.db")

    return run


def weights_of(configuration: object) -> int:
    assert isinstance(configuration, Configuration | dict)
    return sum(weight.numel() for weight in nas_small.build_model(configuration, (1, 8, 8), 10).parameters())


@pytest.mark.parametrize(("given", "most"), [("1e6", 10**6), ("200000", 200_000), (5000, 5000), ("2.5e3", 2500)])
def test_max_params_is_a_whole_number_in_every_spelling(given: object, most: int) -> None:
    assert spec_of(given).max_params == most


@pytest.mark.parametrize("given", ["0", "1.5", "many", "-3", 0, "nan", "inf"])
def test_max_params_that_is_no_number_of_weights_is_refused(given: object) -> None:
    with pytest.raises(InvalidSpecError, match=r"max-params: .* is not allowed"):
        spec_of(given)


def test_max_params_of_a_space_without_networks_is_refused_in_words() -> None:
    with pytest.raises(InvalidSpecError, match="has no networks to tell the costs of"):
        spec_of(1000, space="tests.helpers.toy", metric="loss")


def test_weights_are_counted_as_the_training_builds_them_and_each_network_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of(1)
    limit = CostLimits(spec, spec.make_trainer().load(spec.data))
    assert nas_small.SPACE.defaults is not None
    default = nas_small.SPACE.defaults
    assert f"has {weights_of(default):,} weights, more than 1 " in str(limit.refusal(default))

    def again(*arguments: object) -> None:
        raise AssertionError("it is counted already")

    monkeypatch.setattr(nas_small, "build_model", again)
    faster = default.replace(learning_rate=0.5 * float(str(default["learning_rate"])))
    assert limit.refusal(faster) == limit.refusal(default)


def test_search_trains_only_networks_that_are_small_enough(search: Callable[..., SearchOutcome]) -> None:
    assert nas_small.SPACE.defaults is not None
    most = weights_of(nas_small.SPACE.defaults)
    outcome = search(max_params=most, trials=3)
    trials = outcome.study.trials()
    trained = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    refused = [trial for trial in trials if trial.state is TrialState.INFEASIBLE]
    assert len(trained) == 3 and len(trained) + len(refused) == len(trials)
    assert all(weights_of(trial.configuration) <= most for trial in trained)
    assert refused and all(weights_of(trial.configuration) > most for trial in refused)
    keys = [nas_small.SPACE.key(trial.configuration) for trial in trials]
    assert len(set(keys)) == len(keys)


def test_search_in_which_nothing_is_small_enough_names_the_smallest(
    search: Callable[..., SearchOutcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("automl.scheduler.MAX_REFUSALS_IN_A_ROW", 12)
    outcome = search(max_params=2, trials=3)
    trials = outcome.study.trials()
    assert [trial.state for trial in trials] == [TrialState.INFEASIBLE] * 12
    smallest = min(weights_of(trial.configuration) for trial in trials)
    assert outcome.exit_code == 3
    assert (
        f"the smallest network found has {smallest:,} weights, give --max-params {smallest} or more" in outcome.reason
    )


@pytest.mark.parametrize(("given", "most"), [("1M", 10**6), ("2.5k", 2500), ("150m", 150 * 10**6), ("1G", 10**9)])
def test_counts_may_have_a_letter(given: str, most: int) -> None:
    spec = SearchSpec.from_mapping({**FIELDS, "max_params": given, "max_flops": given}, "a test")
    assert (spec.max_params, spec.max_flops) == (most, most)


def test_latency_limit_with_machines_elsewhere_is_refused_in_words() -> None:
    with pytest.raises(InvalidSpecError, match="--max-latency-ms is measured on this one"):
        SearchSpec.from_mapping(
            {"space": "nas_small", "max_latency_ms": 3, "ray_address": "auto", "executor": "ray"}, "a test"
        )


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        ({"max_flops": 10}, r"makes [\d,]+ multiply-adds for an item, more than 10 \(--max-flops\)"),
        ({"max_memory_mib": 0.1}, r"needs [\d,.]+ MiB of memory, more than 0\.1 \(--max-memory-mib\)"),
        ({"max_latency_ms": 0.01}, r"takes [\d,.]+ ms for an item, more than 0\.01 \(--max-latency-ms\)"),
    ],
    ids=["flops", "memory", "latency"],
)
def test_each_limit_refuses_in_words_and_measures_a_network_once(
    limit: dict[str, float], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SearchSpec.from_mapping({**FIELDS, **limit}, "a test")
    limits = CostLimits(spec, spec.make_trainer().load(spec.data))
    default = nas_small.SPACE.defaults
    assert default is not None
    refusal = limits.refusal(default)
    assert refusal is not None and re.search(text, refusal)

    def again(*arguments: object) -> None:
        raise AssertionError("it is measured already")

    monkeypatch.setattr(nas_small, "build_model", again)
    assert limits.refusal(default) == refusal


def test_several_limits_build_a_network_once(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = {"max_params": "1G", "max_flops": "1T", "max_memory_mib": 1e6}
    spec = SearchSpec.from_mapping({**FIELDS, **wide}, "a test")
    limits = CostLimits(spec, spec.make_trainer().load(spec.data))
    build, built = nas_small.build_model, []

    def counted(configuration: Any, *arguments: Any) -> Any:
        built.append(configuration)
        return build(configuration, *arguments)

    monkeypatch.setattr(nas_small, "build_model", counted)
    assert nas_small.SPACE.defaults is not None
    assert limits.refusal(nas_small.SPACE.defaults) is None
    assert len(built) == 1


def test_cells_of_one_network_are_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The edges of a node that leads nowhere are dead: what is on them makes no other network."""
    spec = spec_of(1)
    limits = CostLimits(spec, spec.make_trainer().load(spec.data))
    default = nas_small.SPACE.defaults
    assert default is not None
    dead = {f"edge_{edge}": "none" for edge in ("1_2", "2_3")}
    first, second = (default.replace(**dead, edge_0_2=operation) for operation in ("conv3x3", "skip"))
    assert nas_small.SPACE.key(first) == nas_small.SPACE.key(second)
    refusal = limits.refusal(first)
    assert refusal is not None

    def again(*arguments: object) -> None:
        raise AssertionError("it is counted already")

    monkeypatch.setattr(nas_small, "build_model", again)
    assert limits.refusal(second) == refusal


def test_memory_limit_depends_on_the_batch() -> None:
    spec = SearchSpec.from_mapping({**FIELDS, "max_memory_mib": 0.1}, "a test")
    limits = CostLimits(spec, spec.make_trainer().load(spec.data))
    default = nas_small.SPACE.defaults
    assert default is not None
    assert limits.refusal(default.replace(batch_size=32)) != limits.refusal(default.replace(batch_size=128))


def test_limits_that_are_wide_enough_refuse_nothing() -> None:
    wide = {"max_params": "1G", "max_flops": "1T", "max_memory_mib": 1e6, "max_latency_ms": 1e6}
    spec = SearchSpec.from_mapping({**FIELDS, **wide}, "a test")
    limits = CostLimits(spec, spec.make_trainer().load(spec.data))
    assert nas_small.SPACE.defaults is not None
    assert limits.refusal(nas_small.SPACE.defaults) is None
    assert limits.advice([]) == ""


OWN_SPACE = """
from search_spaces import Integer, SearchSpace

SPACE = SearchSpace("own", {
    "reductions": Integer(low=1, high=5, role="architecture"),
    "width": Integer(low=2, high=9, role="architecture"),
})


def build_model(configuration, input_shape, num_classes):
    from torch import nn
    width = configuration["width"]
    layers = [nn.Conv2d(input_shape[0], width, 3, padding=1), nn.ReLU()]
    layers += [nn.MaxPool2d(2) for _ in range(configuration["reductions"])]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, num_classes))
"""


@pytest.fixture
def own_space(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / "own.py"
        path.write_text(text)
        return str(path)

    return write


def test_networks_that_cannot_be_built_for_the_data_are_infeasible_and_take_no_place(
    search: Callable[..., SearchOutcome], own_space: Callable[[str], str]
) -> None:
    """Digits have 8 pixels a side: more than three reductions leave nothing."""
    outcome = search(space=own_space(OWN_SPACE), trials=6)
    trials = outcome.study.trials()
    assert outcome.exit_code == 0
    states = {trial.number: trial.state for trial in trials}
    for trial in trials:
        reductions = trial.configuration["reductions"]
        assert isinstance(reductions, int)
        expected = TrialState.COMPLETE if reductions <= 3 else TrialState.INFEASIBLE
        assert states[trial.number] is expected
    assert list(states.values()).count(TrialState.COMPLETE) == 6
    refused = [trial for trial in trials if trial.state is TrialState.INFEASIBLE]
    assert refused and all("cannot be built for these data" in str(trial.attributes["error"]) for trial in refused)


def test_code_that_can_build_no_network_at_all_fails_with_its_place(
    search: Callable[..., SearchOutcome], own_space: Callable[[str], str]
) -> None:
    broken = OWN_SPACE.replace("nn.Linear(width, num_classes)", "nn.Linear(width + 1, num_classes)")
    outcome = search(space=own_space(broken), trials=30, max_failures=2)
    states = [trial.state for trial in outcome.study.trials()]
    assert states == [TrialState.INFEASIBLE] * 10 + [TrialState.FAILED] * 2
    assert outcome.exit_code == 1


def test_code_that_exits_fails_its_trials_and_the_search_goes_on(
    search: Callable[..., SearchOutcome], own_space: Callable[[str], str]
) -> None:
    exiting = OWN_SPACE.replace("low=1, high=5", "low=1, high=2").replace(
        "    from torch import nn\n",
        "    from torch import nn\n    if configuration['width'] > 5:\n        raise SystemExit(0)\n",
    )
    outcome = search(space=own_space(exiting), trials=6, max_failures=100, max_flops="1G")
    trials = outcome.study.trials()
    failed = [trial for trial in trials if int(str(trial.configuration["width"])) > 5]
    assert len(trials) == 6 and failed and len(failed) < 6
    for trial in trials:
        assert trial.state is (TrialState.FAILED if trial in failed else TrialState.COMPLETE)
    assert all(trial.cause == "user_error" for trial in failed)
    assert all("sys.exit(0)" in str(trial.attributes["error"]) for trial in failed)


def test_network_whose_values_decide_is_tried_with_values(own_space: Callable[[str], str]) -> None:
    """Shapes alone do not run a network that looks at its values; it is tried on the CPU."""
    looking = OWN_SPACE + (
        "\n\nbuild_plain = build_model\n\n\n"
        "def build_model(configuration, input_shape, num_classes):\n"
        "    from torch import nn\n\n"
        "    class Looking(nn.Sequential):\n"
        "        def forward(self, x):\n"
        "            return super().forward(x) if x.sum() > -1e9 else x\n\n"
        "    return Looking(*build_plain(configuration, input_shape, num_classes))\n"
    )
    spec = SearchSpec.from_mapping({**FIELDS, "space": own_space(looking), "max_flops": 10}, "a test")
    limits = CostLimits(spec, spec.make_trainer().load(spec.data))
    assert "makes 1,172 multiply-adds" in str(limits.refusal(Configuration({"reductions": 1, "width": 2})))
    assert "Output size is too small" in str(limits.refusal(Configuration({"reductions": 4, "width": 2})))
