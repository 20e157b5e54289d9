"""The one loop that waits for something outside this process."""

import time
from collections.abc import Iterator


def poll(seconds: float, pause: float = 0.5) -> Iterator[bool]:
    """Let the body of a loop look again and again, with a pause between; True says that it is the last time."""
    deadline = time.monotonic() + seconds
    while not (late := time.monotonic() > deadline):
        yield late
        time.sleep(pause)
    yield late
