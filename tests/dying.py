"""The end of a process, as far as the tests' own process can show it; tests/faults kills real ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class KilledError(BaseException):
    """Nothing of ours catches it."""


@contextmanager
def dying(place: Any, step: str, when: str = "before") -> Iterator[None]:
    """Let what the body runs end before or after the first call of a step."""
    whole = getattr(place, step)

    def stopped(*arguments: Any, **named: Any) -> None:
        if when == "after":
            whole(*arguments, **named)
        raise KilledError

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(place, step, stopped)
        with pytest.raises(KilledError):
            yield
