"""The one loop in which tests wait for another process, a thread or a clock, and the one way to let threads work meanwhile."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def wait_until(happened: Callable[[], object], what: str = "", *, seconds: float = 120, pause: float = 0.05) -> None:
    """Return when it has happened; fail with `what` was waited for when it does not."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"expected within {seconds:.0f} s: {what or 'what the test waits for'}"
        time.sleep(pause)


Work = Callable[[Callable[[float], bool]], None]
"""What a thread does: it asks whether to stop, and waits so many seconds for that."""


@contextmanager
def at_work(*works: Work) -> Iterator[None]:
    """Let threads work until the block ends, which each asks for while it waits; an error of theirs fails the test."""
    stop, failed = threading.Event(), list[BaseException]()

    def run(work: Work) -> None:
        try:
            work(stop.wait)
        except BaseException as error:  # told by the test
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed, failed
