"""The text that PostgreSQL has for a value of the lake: the way back, written apart from the way there.

The comparison of source and lake rests on this module, so it shares nothing with the casts that fill the lake: it
knows Arrow's types and PostgreSQL's output functions, works on whole columns, and looks only at odd values one by one.

A float has the fewest digits that lie strictly nearer to it than to its neighbours. Python's own shortest text may lie exactly
half-way between two floats, and rounds back to the even one; PostgreSQL never writes such a text but takes a digit more.
Otherwise both find the same digits and only lay them out differently.
"""

import binascii
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MISFITS = "_misfits"
# Stands between a value and a misfit's text where a row has both: no text of PostgreSQL's has a NUL in it.
_CONTRADICTION = "\0"
_MISFIT_MAP = pa.map_(pa.string(), pa.string())
_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

Kind = type[np.float32] | type[np.float64]


def row_texts(batch: pa.RecordBatch, columns: Sequence[str]) -> list[pa.Array]:
    """Return the text of each of these columns, a misfit's own text in the place of its NULL."""
    rendered = [texts(batch.column(name)) for name in columns]
    if MISFITS not in batch.schema.names or batch.column(MISFITS).null_count == batch.num_rows:
        return rendered
    misfits = batch.column(MISFITS).cast(_MISFIT_MAP)
    return [_with_misfits(column, misfits, name) for column, name in zip(rendered, columns, strict=True)]


def texts(values: pa.Array) -> pa.Array:
    """Return PostgreSQL's texts of an Arrow array as strings, NULL for NULL.

    Raises TypeError for a type that no PostgreSQL type is kept in.
    """
    for is_kind, render in _RENDERERS:
        if is_kind(values.type):
            return render(values)
    raise TypeError(f"expected a lake type that holds PostgreSQL's values, got {values.type} instead")


def _with_misfits(rendered: pa.Array, misfits: pa.Array, name: str) -> pa.Array:
    kept = pc.map_lookup(misfits, name, "first")
    both = pc.binary_join_element_wise(rendered, kept, _CONTRADICTION)
    return pc.coalesce(both, rendered, kept)


def _plain(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def _boolean(values: pa.Array) -> pa.Array:
    return pc.if_else(values, "t", "f")


def _decimal(values: pa.Array) -> pa.Array:
    rendered = values.cast(pa.string())
    return _patched(rendered, values, pc.match_substring(rendered, "E"), lambda value: format(value, "f"))


def _double(values: pa.Array) -> pa.Array:
    return _patched(values.cast(pa.string()), values, _is_odd(values, 1e10), _double_text)


def _single(values: pa.Array) -> pa.Array:
    return _patched(values.cast(pa.string()), values, _is_odd(values, 1e6), _single_text)


def _is_odd(values: pa.Array, limit: float) -> pa.Array:
    """Return which floats Arrow does not write as PostgreSQL does, as plain digits with a point."""
    size = pc.abs(values)
    plain = pc.and_(pc.greater_equal(size, 1e-4), pc.less(size, limit))
    return pc.invert(pc.or_(plain, pc.equal(values, 0)))


def _timestamp(values: pa.Array) -> pa.Array:
    """Write microseconds without trailing zeros."""
    naive = values.cast(pa.timestamp("us"))
    return pc.utf8_rtrim(pc.utf8_rtrim(naive.cast(pa.string()), "0"), ".")


def _timestamp_in_zone(values: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_timestamp(values), "+00", "")


def _binary(values: pa.Array) -> pa.Array:
    """Write all bytes of the column as hex in one go: every offset doubles."""
    filled = pc.fill_null(values.cast(pa.large_binary()), b"")
    offsets = np.frombuffer(filled.buffers()[1], np.int64)[filled.offset : filled.offset + len(filled) + 1]
    data = filled.buffers()[2]
    digits = binascii.hexlify(memoryview(data)[offsets[0] : offsets[-1]]) if data else b""
    doubled = pa.py_buffer(((offsets - offsets[0]) * 2).tobytes())
    hexed = pa.LargeStringArray.from_buffers(len(filled), doubled, pa.py_buffer(digits)).cast(pa.string())
    return pc.if_else(values.is_valid(), pc.binary_join_element_wise("\\x", hexed, ""), None)


def _array(values: pa.Array) -> pa.Array:
    """Write one-dimensional arrays: `{1,NULL,"a b"}`."""
    elements = _quoted_elements(texts(values.flatten()))
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, elements), ",")
    return pc.if_else(values.is_valid(), pc.binary_join_element_wise("{", joined, "}", ""), None)


def _quoted_elements(elements: pa.Array) -> pa.Array:
    """Quote what array_out quotes: the empty text, the word NULL, blanks, braces, commas, quotes, backslashes."""
    special = pc.match_substring_regex(elements, '^$|^(?i:null)$|[ \\t\\n\\v\\f\\r",{}\\\\]')
    escaped = pc.replace_substring_regex(elements, r'(["\\])', r"\\\1")
    quoted = pc.binary_join_element_wise('"', escaped, '"', "")
    return pc.fill_null(pc.if_else(special, quoted, elements), "NULL")


def _hstore(values: pa.Array) -> pa.Array:
    return pa.array([_hstore_text(pairs) for pairs in values.to_pylist()], pa.string())


def _hstore_text(pairs: Sequence[tuple[str, str | None]] | None) -> str | None:
    """Write an hstore, which keeps its keys by length and then by their bytes."""
    if pairs is None:
        return None
    ordered = sorted(((key.encode(), key, value) for key, value in pairs), key=lambda pair: (len(pair[0]), pair[0]))
    return ", ".join(f"{_hstore_quoted(key)}=>{_hstore_quoted(value)}" for _, key, value in ordered)


def _hstore_quoted(text: str | None) -> str:
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _patched(rendered: pa.Array, values: pa.Array, odd: pa.Array, one: Callable[[Any], str]) -> pa.Array:
    """Replace the texts of odd values by what `one` makes of each."""
    chosen = pc.fill_null(odd, False)
    if not pc.any(chosen).as_py():
        return rendered
    patches: list[float | Decimal] = values.filter(chosen).to_pylist()
    return pc.replace_with_mask(rendered, chosen, pa.array(map(one, patches), pa.string()))


def _double_text(value: float) -> str:
    """Return the text of a float8; exponents are written below 1e-4 and from 1e15 on."""
    return _float_text(value, repr(value), np.float64, whole_from=2.0**53, limit=15)


def _single_text(value: float) -> str:
    """Return the text of a float4 given as the same number in double precision; exponents from 1e6 on."""
    shortest = str(np.format_float_scientific(np.float32(value), unique=True, trim="-"))
    return _float_text(value, shortest, np.float32, whole_from=2.0**24, limit=6)


def _float_text(value: float, shortest: str, kind: Kind, *, whole_from: float, limit: int) -> str:
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


_types = pa.types
_RENDERERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...] = (
    (lambda kind: _types.is_string(kind) or _types.is_large_string(kind), _plain),
    (lambda kind: _types.is_int32(kind) or _types.is_int64(kind), _plain),
    (_types.is_boolean, _boolean),
    (_types.is_float32, _single),
    (_types.is_float64, _double),
    (_types.is_decimal, _decimal),
    (_types.is_date32, _plain),
    (lambda kind: _types.is_timestamp(kind) and kind.tz is None, _timestamp),
    (lambda kind: _types.is_timestamp(kind) and kind.tz == "UTC", _timestamp_in_zone),
    (lambda kind: _types.is_binary(kind) or _types.is_large_binary(kind), _binary),
    (lambda kind: _types.is_list(kind) or _types.is_large_list(kind), _array),
    (_types.is_map, _hstore),
)
