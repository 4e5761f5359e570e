"""A space as a YAML file: what it means, and that everything that is wrong is told at once with its line."""

from pathlib import Path

import pytest

from search_spaces import Categorical, Float, Integer, Parameter
from search_spaces.blocks import repeat
from search_spaces.yaml_file import YamlReading, read_yaml_space

WHOLE = """\
task: tabular
description: All that a file can say.
parameters:
  learning_rate: {low: 1e-4, high: 1e-1, log: true}
  optimizer: [sgd, adam]
  momentum: {low: 0.5, high: 0.99, when: {optimizer: sgd}}
  kernel: {choices: [[3, 3], [5, 5]], role: architecture}
  layers: {repeat: {low: 1, high: 3}, item: layer, each: {width: {low: 8, high: 64, step: 8}}}
  share: {low: 0, high: 100}
  rest: {low: 0, high: 100, at_most: 100 - share}
  scale: {low: 1, high: 4, type: float}
  stem:
    block: {op: [conv, pool], size: {low: 1, high: 3, when: {op: conv}}}
    when: {layers: [2, 3]}
    role: architecture
  batch_size: {choices: [16, 32, 64], ordered: true}
  epochs_constant: 10
  nesterov: [true, false]
  answer: [yes, no, 012, ~]
defaults:
  {learning_rate: 1e-2, optimizer: adam, kernel: [3, 3], layers: 1, layer_1_width: 16, share: 40, rest: 60, scale: 2,
   batch_size: 32, epochs_constant: 10, nesterov: true, answer: no}
"""


def read(folder: Path, text: str, name: str = "my_space.yaml") -> YamlReading:
    file = folder / name
    file.write_text(text)
    return read_yaml_space(file)


def test_file_means_what_the_same_space_in_python_means(tmp_path: Path) -> None:
    space = read(tmp_path, WHOLE).space
    assert space is not None
    assert (space.name, space.task, space.description) == ("my_space", "tabular", "All that a file can say.")
    wanted: dict[str, Parameter] = {
        "learning_rate": Float(low=1e-4, high=1e-1, log=True),
        "optimizer": Categorical(choices=("sgd", "adam")),
        "momentum": Float(low=0.5, high=0.99, when={"optimizer": "sgd"}),
        "kernel": Categorical(choices=((3, 3), (5, 5)), role="architecture"),
        **repeat("layers", Integer(low=1, high=3), {"width": Integer(low=8, high=64, step=8)}, item="layer"),
        "share": Integer(low=0, high=100),
        "rest": Integer(low=0, high=100, at_most="100 - share"),
        "scale": Float(low=1.0, high=4.0),
        "stem_op": Categorical(choices=("conv", "pool"), when={"layers": (2, 3)}, role="architecture"),
        "stem_size": Integer(low=1, high=3, when={"stem_op": "conv", "layers": (2, 3)}, role="architecture"),
        "batch_size": Categorical(choices=(16, 32, 64), ordered=True),
        "epochs_constant": Categorical(choices=(10,)),
        "nesterov": Categorical(choices=(True, False)),
        "answer": Categorical(choices=("yes", "no", 12, None)),
    }
    assert dict(space.parameters) == wanted
    assert space.defaults is not None
    assert space.plain(space.defaults)["kernel"] == (3, 3)


def test_all_faults_of_ranges_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    faulty = """\
parameters:
  a: {low: 0, high: 1.0, log: true}
  b: {low: 0.1, high: 1.0, log: true, step: 0.1}
  c: {low: 0, high: 10, step: 0}
  d: {low: .nan, high: 1.0}
  e: {low: 0.0, high: .inf}
  f: {low: 3, high: 1}
  g: {choices: [{a: 1}]}
  h: {low: 1, high: 2, when: {nothing: 1}}
  i: {low: 1, hihg: 2}
  j: {low: 1, high: 9, logg: true}
  k: {low: one, high: 2}
  l: {size: 3}
  a: 5
  m-n: 5
  o: {repeat: {low: 1, high: 2.5}, each: {width: {low: 5, high: 1}}}
  p: {low: 1, high: 5, at_most: 2 * v}
  q: {low: 1, high: 5, log: yes}
  r: {low: 1, high: 5, type: double}
  s: {low: 1, high: 5, when: {q: 2}}
  t: {low: 1, high: 5, when: [h]}
  u: []
  v: {low: 1, high: 5}
nmae: x
defaults: {c: 1, j: 99}
"""
    reading = read(tmp_path, faulty)
    assert reading.space is None
    lines = [int(fault.split()[1].rstrip(":")) for fault in reading.faults]
    assert sorted(set(lines)) == [*range(2, 20), 21, 22, 24, 25]  # 20 depends on what is wrong itself
    text = "\n".join(reading.faults)
    for words in (
        "line 2: a: low=0 has no logarithm",
        "line 3: b: step=0.1 and log=True exclude each other",
        "line 4: c: step=0 is not positive",
        "line 5: d: low=nan is no finite number",
        "line 6: e: high=inf is no finite number",
        "line 7: f: low=3 is not below high=1",
        "line 8: g: a choice is a scalar or a list of them, not a mapping (line 8)",
        "line 9: h depends on 'nothing', which is no parameter",
        "line 10: i: no field 'hihg'; did you mean 'high'?",
        "line 10: i: high must be given",
        "line 11: j: no field 'logg'; did you mean 'log'?",
        "line 12: k: low='one' is no finite number",
        "line 14: 'a' is there already, in line 2",
        "line 16: o_width: low=5 is not below high=1",
        "line 16: o: repeat is a range of whole numbers",
        "line 17: p depends on v, which must come before it",
        "line 18: q: log is true or false, not 'yes'",
        "line 19: r: no type 'double'; types: integer, float",
        "line 24: no field 'nmae'; did you mean 'name'?",
        "line 25: defaults: j=99 is outside [1, 9]",
    ):
        assert words in text


def test_defaults_are_checked_as_a_whole(tmp_path: Path) -> None:
    text = "parameters: {a: [x, y], b: {low: 1, high: 2, when: {a: x}}}\ndefaults:\n  a: y\n  b: 1\n  c: 3\n"
    faults = read(tmp_path, text).faults
    assert [fault.partition(": ")[0] for fault in faults] == ["line 4", "line 5"]
    assert "b=1 is given, but it is there only when a is x" in faults[0]


def test_what_was_read_otherwise_than_meant_is_noted(tmp_path: Path) -> None:
    text = "parameters:\n  lr: [1e-5, 1e-1]\n  rate: {low: 0, high: 1, step: 0.3}\n"
    reading = read(tmp_path, text)
    assert reading.space is not None and reading.space.notes == reading.notes
    assert reading.notes == (
        "line 2: lr: two numbers are two choices; a range is written {low: 1e-05, high: 0.1}",
        "rate: high=1.0 is not on the grid; the values are 0, 0.3, 0.6, 0.9",
    )
    assert list(reading.space.parameters["rate"].values()) == [0.0, 0.3, 0.6, 0.9]


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "line 1: the file lacks parameters"),
        ("- a\n", "line 1: the file holds a list"),
        ("parameters: 3\n", "line 1: the file has 3 for parameters"),
        ("\nparameters: [a, b\n", "line 3: no valid YAML"),
        ("a: &x [*x]\n", "line 1: it contains itself"),
        ("name: [a]\nparameters: {a: 1}\n", "line 1: name is a list; give a text"),
        ("name: a b\nparameters: {a: 1}\n", "line 1: search space 'a b': 'a b' is no identifier"),
        ("parameters: {a: 1}\ndefaults: 3\n", "line 2: defaults is 3"),
        ("parameters: {a: !!python/name:os.system x}\n", "has the type tag:yaml.org,2002:python/name:os.system"),
        ("parameters: {a_1: 1, a: {repeat: 1, each: {b: 1}, item: a b}}", "line 1: a: item='a b' is no prefix"),
        ("parameters: {a_b: 1, a: {block: {b: 2}}}", "line 1: a_b is there already"),
        ("parameters: {a: {repeat: {low: 1, high: 1000000000}, each: {b: 1}}}", "a block is there at most"),
    ],
)
def test_file_that_is_no_space_is_told_so(tmp_path: Path, text: str, words: str) -> None:
    reading = read(tmp_path, text)
    assert reading.space is None
    assert any(words in fault for fault in reading.faults), reading.faults


def test_file_that_cannot_be_read_or_is_no_text_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_bytes(b"\xff\xfe\x00")
    assert read_yaml_space(tmp_path).faults == ("the file cannot be read: Is a directory",)
    assert "no UTF-8 text" in read_yaml_space(tmp_path / "odd.yaml").faults[0]


def test_shared_parts_and_odd_file_names_are_understood(tmp_path: Path) -> None:
    text = "parameters:\n  a: &range {low: 1, high: 4}\n  b: {<<: *range, high: 8}\n"
    space = read(tmp_path, text, "1 my-space.yml").space
    assert space is not None and space.name == "_1_my_space"
    assert space.parameters["b"] == Integer(low=1, high=8)
