import threading
from concurrent.futures import Future

import pytest

from automl.background import BackgroundWork

WAIT_S = 10.0


def settled(background: BackgroundWork) -> None:
    assert background.wait(WAIT_S)
    background.settle()
    assert background.is_idle


def test_background_work_of_one_key_is_in_order_and_what_follows_is_in_the_users_thread() -> None:
    background, done, followed = BackgroundWork(3, lambda: None), list[int](), list[tuple[int, int]]()

    def follow(ended: Future[int]) -> None:
        followed.append((ended.result(), threading.get_ident()))

    def work(number: int) -> int:
        done.append(number)
        return number

    for number in range(200):
        background.put(7, lambda number=number: work(number), follow)  # type: ignore[misc]  # a default binds it
    settled(background)
    assert done == list(range(200))
    assert followed == [(number, threading.get_ident()) for number in range(200)]
    background.close()


def test_background_work_that_hangs_holds_up_its_own_key_only() -> None:
    background, released, done = BackgroundWork(2, lambda: None), threading.Event(), list[str]()
    background.put(1, lambda: released.wait(WAIT_S))
    background.put(1, lambda: done.append("after"))
    others = threading.Semaphore(0)
    for _ in range(50):
        background.put(2, lambda: done.append("other"))
    background.put(2, others.release)
    assert others.acquire(timeout=WAIT_S)
    assert done == ["other"] * 50
    assert not background.wait(0.0)
    released.set()
    settled(background)
    assert done[-1] == "after"
    background.close()


def test_background_work_wakes_its_user_and_raises_its_error_when_it_is_settled() -> None:
    woken = threading.Event()
    background = BackgroundWork(1, woken.set)

    def fail() -> None:
        raise OSError("no room")

    background.put(1, fail)
    background.put(2, lambda: None)
    assert woken.wait(WAIT_S)
    assert background.wait(WAIT_S)
    with pytest.raises(OSError, match="no room"):
        background.settle()
    background.settle()
    assert background.is_idle, "the rest is not lost"
    background.close()
