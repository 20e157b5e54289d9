"""Names for attempts: short, sorted by time, safe in paths and in SQL."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from secrets import token_hex

_ATTEMPT = re.compile(r"\d{8}t\d{9}_[0-9a-f]{8}")


def new_attempt() -> str:
    """Return a name such as `20261121t091500123_3f9a1c2d`: milliseconds of UTC, and digits against coincidence."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dt%H%M%S}{now.microsecond // 1000:03d}_{token_hex(4)}"


def made_before(name: str, at: datetime) -> bool:
    """Return whether a name is that of an attempt which was begun before a time."""
    return _ATTEMPT.fullmatch(name) is not None and name < f"{at.astimezone(UTC):%Y%m%dt%H%M%S}"
