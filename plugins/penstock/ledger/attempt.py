"""Names for attempts: short, sorted by time, safe in paths, in Iceberg branch names and in SQL."""

from __future__ import annotations

from datetime import UTC, datetime
from secrets import token_hex


def new_attempt() -> str:
    """Return a name such as `20261121t091500123_3f9a1c2d`: milliseconds of UTC, and digits against coincidence."""
    now = datetime.now(UTC)
    return f"{now:%Y%m%dt%H%M%S}{now.microsecond // 1000:03d}_{token_hex(4)}"
