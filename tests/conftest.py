import os
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy machine")

NEEDED = [word for word in os.environ.get("AUTOML_TESTS_MAY_NOT_SKIP", "").lower().split(",") if word]
"""Words of the reasons for which no test may be skipped: the continuous integration has all that they need."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where what the test needs should be there."""
    report = yield
    reason = str(report.longrepr).lower()
    if report.skipped and any(word in reason for word in NEEDED):
        report.outcome = "failed"
        report.longrepr = f"must not be skipped here: {reason}"
    return report


@pytest.fixture(autouse=True)
def _usual_signals() -> Iterator[None]:
    """Ray leaves handlers of its own in place; in a process that a test forks, the one for SIGTERM may never return."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
