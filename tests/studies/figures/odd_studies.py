"""Studies that broke the plots of others: name -> snapshot."""

import math

from studies.figures.snapshot import StudySnapshot
from studies.trial import TrialState
from tests.studies.figures.examples import snapshot, trial, with_configuration

ODD_STUDIES: dict[str, StudySnapshot] = {
    "empty": snapshot(),
    "one trial": snapshot(trial(0, value=0.5, x=0.1, operation="skip")),
    "two equal": snapshot(trial(0, value=0.5, x=0.1), trial(1, value=0.5, x=0.2)),
    "constant value": snapshot(*[trial(i, value=0.5, x=i / 10, y=i) for i in range(12)]),
    "constant parameter": snapshot(*[trial(i, value=i / 7, x=3, resize="Resize") for i in range(12)]),
    "one constant of two": snapshot(*[trial(i, value=i / 7, x=i / 3, resize="Resize") for i in range(12)]),
    "nearly all worst": snapshot(*[trial(i, value=0.0 if i == 4 else 1.0, x=i / 7) for i in range(20)]),
    "all pruned": snapshot(*[trial(i, TrialState.PRUNED, reports={1: 0.3, 2: 0.2}, x=i / 10) for i in range(5)]),
    "pruned without steps": snapshot(*[trial(i, TrialState.PRUNED, x=i / 10) for i in range(5)]),
    "all failed": snapshot(*[trial(i, TrialState.FAILED, cause="oom", error="out of memory", x=i) for i in range(5)]),
    "all infeasible": snapshot(*[trial(i, TrialState.INFEASIBLE, cause="infeasible", x=i) for i in range(3)]),
    "infinite values": snapshot(
        *[trial(i, value=v, x=i / 10) for i, v in enumerate([math.inf, -math.inf, 0.2, 0.3, 0.4, 0.5, 0.6])]
    ),
    "all infinite": snapshot(*[trial(i, value=math.inf, x=i / 10) for i in range(4)]),
    "nan steps": snapshot(
        *[trial(i, value=i / 3, reports={1: math.nan, 2: math.inf, 3: i / 3}, x=i / 10) for i in range(6)]
    ),
    "nan parameters": snapshot(
        *[trial(i, value=i / 7, x=math.nan if i == 2 else i / 7, y=math.inf if i == 3 else float(i)) for i in range(8)]
    ),
    "conditional": snapshot(
        *[
            trial(i, value=i / 3, kind="a", momentum=i / 10) if i % 2 else trial(i, value=i / 3, kind="b")
            for i in range(8)
        ]
    ),
    "only running": snapshot(*[trial(i, TrialState.RUNNING, reports={1: 0.3}, x=i / 10) for i in range(3)]),
    "only queued": snapshot(*[trial(i, TrialState.QUEUED, x=i / 10) for i in range(3)]),
    "log ranges": snapshot(
        *[trial(i, value=i / 7, lr=10 ** (-6 + i / 4), wd=10 ** (-5 + i * 7 % 20 / 5)) for i in range(20)]
    ),
    "mixed kinds": snapshot(
        *[trial(i, value=i / 7, a=[None, True, 1, "x", 2.5][i % 5], b=i % 2 == 0, c=[1, 2.5][i % 2]) for i in range(10)]
    ),
    "gaps in the numbers": snapshot(trial(3, value=1.0, x=0.1, y="u"), trial(9, value=2.0, x=0.4, y="v")),
    "no parameters": snapshot(*[trial(i, value=i / 3) for i in range(6)]),
    "html in names": snapshot(
        *[
            with_configuration(
                trial(i, value=i / 7), {"<b>x</b>": i / 7, "$y$": ["<script>alert(1)</script>", "&lt;"][i % 2]}
            )
            for i in range(8)
        ]
    ),
}
