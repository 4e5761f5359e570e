"""What a real thread shows of itself: whether it works, waits for its data, or hangs."""

import threading
import time
from collections.abc import Callable

import pytest

from automl.executors.ray.vital_signs import VitalSigns
from automl.executors.ray.watch import Limits, Verdict, Watch

STALL_S = 1.0


def verdict_on(work: Callable[[threading.Event], None], seconds: float) -> Verdict | None:
    """Watch a thread as a driver watches a rank, but more often."""
    signs, is_over = VitalSigns(), threading.Event()

    def rank() -> None:
        with signs.watched():
            work(is_over)

    thread = threading.Thread(target=rank)
    began = time.monotonic()
    watch = Watch(limits=Limits(stall_s=STALL_S), ranks=1, made_at=began)
    watch.begin(began)
    thread.start()
    verdict = None
    while verdict is None and time.monotonic() < began + seconds:
        is_over.wait(0.1)
        watch.note(0, signs.pulse(), time.monotonic())
        verdict = watch.verdict(time.monotonic())
    is_over.set()
    thread.join()
    return verdict


def load_slowly(is_over: threading.Event) -> None:
    """Wait for a batch nearly all of the time, and compute a little."""
    while not is_over.wait(0.1):
        end = time.thread_time() + 0.002
        while time.thread_time() < end:
            pass


def hang(is_over: threading.Event) -> None:
    is_over.wait()


def look_now_and_then(is_over: threading.Event) -> None:
    """Hang in a loop that asks every second whether it may go on, as a loader does whose worker hangs."""
    while not is_over.wait(1.0):
        pass


def test_slow_data_are_no_standstill() -> None:
    assert verdict_on(load_slowly, 4 * STALL_S) is None


@pytest.mark.parametrize("work", [hang, look_now_and_then])
def test_hanging_is_a_standstill_and_its_place_is_told(work: Callable[[threading.Event], None]) -> None:
    verdict = verdict_on(work, 20 * STALL_S)
    assert verdict is not None
    assert "stood still" in verdict.reason
    assert work.__name__ in verdict.stack


def test_thread_without_a_task_is_nowhere() -> None:
    assert VitalSigns().pulse().place is None
