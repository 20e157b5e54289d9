"""The one loop in which tests wait for another process, a thread or a clock."""

import time
from collections.abc import Callable


def wait_until(happened: Callable[[], object], what: str = "", *, seconds: float = 120, pause: float = 0.05) -> None:
    """Return when it has happened; fail with `what` was waited for when it does not."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, f"expected within {seconds:.0f} s: {what or 'what the test waits for'}"
        time.sleep(pause)
