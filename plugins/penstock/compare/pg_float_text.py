"""A float's text as PostgreSQL writes it: the fewest digits that lie strictly nearer to it than to its neighbours.

Python's own shortest text may lie exactly half-way between two floats, and rounds back to the even one; PostgreSQL
never writes such a text but takes a digit more. Otherwise both find the same digits and only lay them out differently.
"""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

Kind = type[np.float32] | type[np.float64]

_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def double_text(value: float) -> str:
    """Return the text of a float8; exponents are written below 1e-4 and from 1e15 on."""
    return _text(value, repr(value), np.float64, whole_from=2.0**53, limit=15)


def single_text(value: float) -> str:
    """Return the text of a float4 given as the same number in double precision; exponents from 1e6 on."""
    shortest = str(np.format_float_scientific(np.float32(value), unique=True, trim="-"))
    return _text(value, shortest, np.float32, whole_from=2.0**24, limit=6)


def _text(value: float, shortest: str, kind: Kind, *, whole_from: float, limit: int) -> str:
    """Write a float; `whole_from` is where all floats are whole numbers: below, no short text lies half-way."""
    if not math.isfinite(value):
        return _NAMES[str(value)]
    sign, size, text = "-" if math.copysign(1, value) < 0 else "", abs(value), shortest.lstrip("-")
    digits, exponent = _split(text if size < whole_from else _strictly_nearest(size, text, kind))
    return sign + _laid_out(digits, exponent, limit)


def _strictly_nearest(value: float, shortest: str, kind: Kind) -> str:
    """Return the shortest numeral unless it is half-way to a neighbour; then the nearest one with more digits."""
    exact = Fraction(value)
    text = shortest
    length = len(_split(shortest)[0])
    while (off := Fraction(text) - exact) and 2 * abs(off) >= _gap(value, math.copysign(math.inf, off), kind):
        text = f"{value:.{length}e}"
        length += 1
    return text


def _gap(value: float, towards: float, kind: Kind) -> Fraction:
    """Return the distance from a float to its neighbour in a direction; the greatest one's is as far as the one below."""
    near = kind(value)
    with np.errstate(over="ignore"):
        other = np.nextafter(near, kind(towards))
    other = other if np.isfinite(other) else np.nextafter(near, kind(0))
    return abs(Fraction(float(other)) - Fraction(value))


def _split(numeral: str) -> tuple[str, int]:
    """Return the significant digits, and the exponent of the first one."""
    _, digits, exponent = Decimal(numeral).normalize().as_tuple()
    return "".join(map(str, digits)), int(exponent) + len(digits) - 1


def _laid_out(digits: str, exponent: int, limit: int) -> str:
    if not -4 <= exponent < limit:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{whole}.{fraction}" if fraction else whole
