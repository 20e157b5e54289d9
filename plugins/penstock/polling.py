"""The one loop that waits for something outside of this process: a file here, as the stack waits by it, too."""

import time
from collections.abc import Iterator


def poll(seconds: float | None = None, pause: float = 0.5) -> Iterator[bool]:
    """Let the body of a loop look again and again, with a pause between; True says that it is the last time.

    Without `seconds` there is no last time: a machine may be as slow as it likes. The body ends the loop when what it waits for
    has come, or has died.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    while deadline is None or time.monotonic() < deadline:
        yield False
        time.sleep(pause)
    yield True
