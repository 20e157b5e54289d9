"""How numbers are said to a person: sizes, spans and times, short and with their unit."""

from datetime import datetime

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024
_NOTHING = "\u2013"  # an en dash


def size(value: float | None) -> str:
    """Say a number of bytes: `1.5 GiB`."""
    if value is None:
        return _NOTHING
    number, unit = float(value), 0
    while abs(number) >= _STEP and unit < len(_UNITS) - 1:
        number, unit = number / _STEP, unit + 1
    return f"{number:.0f} B" if unit == 0 else f"{number:.{0 if number >= 100 else 1}f} {_UNITS[unit]}"


def count(value: float | None) -> str:
    """Say a number with a thin space between thousands: `1 234 567`."""
    return _NOTHING if value is None else f"{value:,.0f}".replace(",", "\u202f")


def several(value: int, noun: str) -> str:
    """Say how many there are of what is named in the singular: `1 window`, `1 234 windows`."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def span(seconds: float | None) -> str:
    """Say a span of time by its two largest units, and not by a zero: `2 h 5 min`, `3 d`."""
    if seconds is None:
        return _NOTHING
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    whole = int(seconds)
    days, hours, minutes = whole // 86400, whole // 3600 % 24, whole // 60 % 60
    if days:
        parts = (days, "d"), (hours, "h")
    elif hours:
        parts = (hours, "h"), (minutes, "min")
    else:
        parts = (minutes, "min"), (whole % 60, "s")
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


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
