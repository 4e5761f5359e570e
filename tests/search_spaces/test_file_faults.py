from pathlib import Path

from search_spaces.file_faults import parameter_faults

SIX = """import search_spaces
from search_spaces import Categorical, Float, Integer

nan, inf = float("nan"), float("inf")
PARAMETERS = {
    "a": Float(low=0, high=1, log=True),
    "b": Integer(low=1, high=9, log=True, step=2),
    "c": search_spaces.Float(low=0.0, high=1.0, step=0.0),
    "d": Float(low=nan, high=1.0),
    "e": Float(
        low=0.0, high=inf
    ),
    "f": Float(low=0.0, high=1.0),
    "g": Float(low=1.0, high=0.0),
}
raise RuntimeError("what follows is of no interest")
"""


def test_every_faulty_parameter_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "six.py"
    path.write_text(SIX)
    faults = parameter_faults(path)
    assert [fault.split(":")[0] for fault in faults] == [f"line {line}" for line in (6, 7, 8, 9, 10, 14)]
    for fault, part in zip(faults, ("log", "step=2", "step=0.0", "low=nan", "high=inf", "low=1.0"), strict=True):
        assert part in fault


def test_file_with_another_fault_has_none(tmp_path: Path) -> None:
    path = tmp_path / "other.py"
    for text in ("1 / 0", "def (", "from search_spaces import Float\nFloat(low=0.0, high=1.0)"):
        path.write_text(text)
        assert parameter_faults(path) == ()
