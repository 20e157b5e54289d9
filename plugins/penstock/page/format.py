"""How numbers are said to a person: sizes, spans and times, short and with their unit."""

from datetime import datetime

from penstock import units

_NOTHING = "\u2013"  # an en dash


def size(value: float | None) -> str:
    """Say a number of bytes: `1.5 GiB`."""
    return _NOTHING if value is None else units.size(value)


def count(value: float | None) -> str:
    """Say a number with a thin space between thousands: `1 234 567`."""
    return _NOTHING if value is None else f"{value:,.0f}".replace(",", "\u202f")


def several(value: int, noun: str) -> str:
    """Say how many there are of what is named in the singular: `1 window`, `1 234 windows`."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def span(seconds: float | None) -> str:
    """Say a span of time by its two largest units, a short one to a tenth of a second: `2 h 5 min`, `0.4 s`."""
    if seconds is None:
        return _NOTHING
    return f"{max(seconds, 0.0):.1f} s" if seconds < 10 else units.span(seconds)


def age(seconds: float | None) -> str:
    """Say how long something has lasted, as coarsely as a glance needs: `3 min`, never a tenth of a second."""
    if seconds is None:
        return _NOTHING
    if seconds < 60:
        return f"{max(int(seconds), 0)} s"
    return f"{int(seconds) // 60} min" if seconds < 3600 else span(seconds)


def moment(at: datetime | None) -> str:
    """Say a time in UTC to the second: `2026-11-21 03:04:05`."""
    return _NOTHING if at is None else f"{at:%Y-%m-%d %H:%M:%S}"
