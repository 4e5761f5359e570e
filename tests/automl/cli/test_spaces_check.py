"""`automl spaces check`: what is wrong with a space of one's own is found before any search."""

from pathlib import Path

import pytest

from tests.automl.cli.conftest import Shell

SPACE = """
from search_spaces import Float, Integer, SearchSpace

SPACE = SearchSpace("own", {
    "width": Integer(low=2, high=9, role="architecture"),
    "learning_rate": Float(low=1e-3, high=1e-1, log=True),
})


def build_model(configuration, input_shape, num_classes):
    from torch import nn
    width = configuration["width"]
    return nn.Sequential(
        nn.Conv2d(input_shape[0], width, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, num_classes)
    )
"""


def checked(shell: Shell, text: str, *arguments: str, name: str = "own.py") -> tuple[int, str, str]:
    (Path(shell.folder) / name).write_text(text)
    ended = shell("spaces", "check", name, "--configurations", 5, *arguments)
    assert not (Path(shell.folder) / "automl-runs").exists()  # nothing is stored
    return ended.code, ended.out, ended.err


def test_sound_space_is_tried_with_made_up_and_with_given_data(shell: Shell) -> None:
    code, out, err = checked(shell, SPACE)
    assert (code, err) == (0, "")
    assert "5 of 5 networks were built and learned a step from made-up images of 3 x 32 x 32 and 10 outputs\n" in out
    assert "no mistakes were found" in out
    code, out, _ = checked(shell, SPACE, "--data", "digits")
    assert code == 0
    assert "from items of 1x8x8 and 10 outputs" in out


@pytest.mark.parametrize(
    "old, new, text",
    [
        ("width, num_classes)", "width, num_classes + 1)", "needed: a tensor of (4, 10)"),
        ("width = configuration", "width = nothing", "NameError"),
        (
            "width = configuration",
            "raise SystemExit(0); width = configuration",
            "SystemExit: it called sys.exit(0) (5 of 5",
        ),
        (
            "log=True),\n}",
            "log=True),\n}, refuse=lambda found: found['zz']",
            "its `refuse` raises KeyError: 'zz' (5 of 5",
        ),
        ("log=True),\n}", "log=True),\n}, canonical=lambda found: {**found, 'width': 99}", "[2, 9]) (5 of 5"),
        (
            "log=True),\n}",
            "log=True),\n}, canonical=lambda found: {**found, 'width': 11 - found['width']}",
            "its `canonical` names, for the configuration that it has named, another one",
        ),
        ("high=9, role", "high=9, at_most='1 - others', role", "has no value"),
        ("nn.Flatten(), nn.Linear(width, num_classes)", "nn.Linear(width, 2)", "no network could be built"),
        ('"learning_rate"', '"learning_rat"', "no hyperparameter 'learning_rat'"),
        ("low=1e-3", "low=-1.0", "line 6: Float: low=-1.0 has no logarithm"),
        ("def build_model", "SPACE = 3\ndef build_model", "must define SPACE"),
        ("def build_model(", "def build_model((", "own.py, line"),
    ],
    ids=[
        "wrong answer",
        "fault in code",
        "exit",
        "refuse",
        "canonical",
        "not the same",
        "no value",
        "never built",
        "unknown name",
        "range",
        "no space",
        "syntax",
    ],
)
def test_faults_are_named_and_end_with_2(shell: Shell, old: str, new: str, text: str) -> None:
    space = SPACE.replace('"width":', '"others": Integer(low=5, high=900),\n    "width":') if "others" in new else SPACE
    code, _, err = checked(shell, space.replace(old, new))
    assert code == 2
    assert text in err


def test_all_faulty_parameters_are_named_at_once(shell: Shell) -> None:
    faulty = SPACE.replace("low=2, high=9", "low=9, high=2").replace("low=1e-3, high=1e-1", "low=0.0, high=1e-1")
    code, _, err = checked(shell, faulty)
    assert code == 2
    assert "2 mistakes in own.py:" in err
    assert "line 5: Integer" in err and "line 6: Float" in err


def test_infeasible_networks_and_idle_weights_are_told_and_no_fault(shell: Shell) -> None:
    deep = SPACE.replace("nn.Conv2d(input_shape[0], width, 3)", "nn.Conv2d(input_shape[0], width, 6 * width)")
    code, out, _ = checked(shell, deep)
    assert code == 0
    assert "are infeasible, and a search would refuse them" in out
    extra = "network[0].register_parameter('extra', nn.Parameter(network[0].weight.detach().clone()))"
    idle = SPACE.replace("return nn.Sequential(", "network = nn.Sequential(") + f"    {extra}\n    return network\n"
    code, out, _ = checked(shell, idle)
    assert code == 0
    assert "note: 5 networks have weights that get no gradient: 0.extra" in out


def test_space_without_networks_is_checked_as_far_as_it_goes(shell: Shell) -> None:
    code, out, _ = checked(shell, SPACE[: SPACE.index("def build_model")])
    assert code == 0
    assert "it builds no network" in out


def test_name_of_a_space_may_stand_in_place_of_a_command(shell: Shell) -> None:
    assert shell("spaces", "show", "tabular_mlp").out == shell("spaces", "tabular_mlp").out
    assert shell("spaces", "--help").out.count("check") >= 1
    assert shell("spaces", "nas_smal").code == 2
