"""A float's text as PostgreSQL writes it: the fewest digits that lie strictly nearer to it than to its neighbours.

Python's own shortest text may lie exactly half-way between two floats, and rounds back to the even one; PostgreSQL
never writes such a text but takes a digit more. Otherwise both find the same digits and only lay them out differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

Gap = Callable[[float, float], Fraction]
"""The distance from a float to its neighbour in a direction."""

_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def double_text(value: float) -> str:
    """Return the text of a float8; exponents are written below 1e-4 and from 1e15 on."""
    return _text(value, repr(value), _double_gap, whole_from=2.0**53, limit=15)


def single_text(value: float) -> str:
    """Return the text of a float4 given as the same number in double precision; exponents from 1e6 on."""
    shortest = str(np.format_float_scientific(np.float32(value), unique=True, trim="-"))
    return _text(value, shortest, _single_gap, whole_from=2.0**24, limit=6)


def _text(value: float, shortest: str, gap: Gap, *, whole_from: float, limit: int) -> str:
    """Write a float; `whole_from` is where all floats are whole numbers: below, no short text lies half-way."""
    if not math.isfinite(value):
        return _NAMES[str(value)]
    sign, size, text = "-" if math.copysign(1, value) < 0 else "", abs(value), shortest.lstrip("-")
    digits, exponent = _split(text if size < whole_from else _strictly_nearest(size, text, gap))
    return sign + _laid_out(digits, exponent, limit)


def _strictly_nearest(value: float, shortest: str, gap: Gap) -> str:
    """Return the shortest numeral unless it is half-way to a neighbour; then the nearest one with more digits."""
    exact = Fraction(value)
    text = shortest
    length = len(_split(shortest)[0])
    while (off := Fraction(text) - exact) and 2 * abs(off) >= gap(value, math.copysign(math.inf, off)):
        text = f"{value:.{length}e}"
        length += 1
    return text


def _double_gap(value: float, towards: float) -> Fraction:
    other = math.nextafter(value, towards)
    # the neighbour of the greatest float is not a float: it is as far as the one below
    return abs(Fraction(other if math.isfinite(other) else math.nextafter(value, 0)) - Fraction(value))


def _single_gap(value: float, towards: float) -> Fraction:
    single = np.float32(value)
    with np.errstate(over="ignore"):
        other = np.nextafter(single, np.float32(towards))
    other = other if np.isfinite(other) else np.nextafter(single, np.float32(0))
    return abs(Fraction(float(other)) - Fraction(value))


def _split(numeral: str) -> tuple[str, int]:
    """Return the significant digits, and the exponent of the first one."""
    mantissa, _, exponent = numeral.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    place = int(exponent or 0) + len(whole) - 1 - leading
    return digits.rstrip("0") or "0", place if digits else 0


def _laid_out(digits: str, exponent: int, limit: int) -> str:
    if not -4 <= exponent < limit:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole
