"""From PostgreSQL's texts to values in Arrow, for the types whose texts Arrow's own parser reads exactly.

A copy parses what it reads while it is in memory. It is all or nothing: a text that is not of the type (a date before
Christ, a NaN among decimals, an array of two dimensions) raises, and the file is landed as texts, for the casts of the
engine, which keep misfits. Both must agree on every value, which tests hold them to.
"""

import pyarrow as pa
import pyarrow.compute as pc

from penstock.values.lake_types import describe, lake_type_of
from penstock.values.pgtype import PgType


def parsed_type(type: PgType) -> str | None:
    """Return the lake type that `parse` makes of a type's texts; None where they must stay texts."""
    lake_type = lake_type_of(type)
    return lake_type if arrow_type(lake_type) is not None else None


def arrow_type(lake_type: str) -> pa.DataType | None:
    """Return the Arrow type of a lake type that is parsed, else None."""
    known = describe(lake_type)
    return known.arrow if known.parsed else None


def parse(texts: pa.StringArray, lake_type: str) -> pa.Array:
    """Return the values of texts that the server rendered under the pinned settings; NULL stays NULL.

    Raises pa.ArrowInvalid where a text is no value of the lake type.
    """
    type_ = arrow_type(lake_type)
    if lake_type == "boolean":
        return _booleans(texts)
    if pa.types.is_list(type_):
        return _lists(texts, type_)
    return texts.cast(type_)


def value_of(column: pa.Array, lake_type: str) -> pa.Array:
    """Return the values of a column that a copy has read: of texts, or of values as the server sent them.

    Raises pa.ArrowInvalid where one is no value of the lake type. The infinities of dates and times, and years that the
    driver's numbers cannot hold, come as numbers far away from the lake's years.
    """
    if pa.types.is_string(column.type):
        return parse(column, lake_type)
    if lake_type in _YEARS:
        first, last = _YEARS[lake_type]
        found = pc.min_max(column.cast(_NUMBERS[column.type.bit_width])).as_py()
        if found["min"] is not None and not first <= found["min"] <= found["max"] < last:
            raise pa.ArrowInvalid(f"expected a {lake_type} of the years 1 to 9999")
    return column


def widened(texts: pa.StringArray) -> pa.StringArray:
    """Return the texts of `real` values as those of doubles, as the server writes them."""
    doubles = texts.cast(pa.float32()).cast(pa.float64())
    written = doubles.cast(pa.string())
    for theirs, ours in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
        written = pc.if_else(pc.equal(written, theirs), ours, written)
    return written


_NUMBERS = {32: pa.int32(), 64: pa.int64()}
_DAYS = (-719_162, 2_932_897)
"""The first day of the year 1, and of the year 10000, as days of 1970."""
_MICROSECONDS = tuple(day * 86_400_000_000 for day in _DAYS)
_YEARS = {"date": _DAYS, "timestamp_ntz": _MICROSECONDS, "timestamp": _MICROSECONDS}


def _booleans(texts: pa.StringArray) -> pa.Array:
    true = pc.equal(texts, "t")
    if pc.any(pc.invert(pc.or_(true, pc.equal(texts, "f")))).as_py():
        raise pa.ArrowInvalid("a boolean must be t or f")
    return true


def _lists(texts: pa.StringArray, type_: pa.ListType) -> pa.Array:
    """Take one-dimensional arrays of integers apart; what stands between the braces of others is no integer."""
    lists = pc.split_pattern(pc.utf8_slice_codeunits(texts, 1, -1), ",")
    items, empty = lists.flatten(), pc.equal(texts, "{}")
    lengths = pc.if_else(empty, 0, pc.list_value_length(lists))
    offsets = pa.concat_arrays(
        [pa.array([0], pa.int32()), pc.cumulative_sum(pc.fill_null(lengths, 0)).cast(pa.int32())]
    )
    items = items.filter(pc.not_equal(items, ""))  # the one item of an empty array
    values = pc.if_else(pc.equal(items, "NULL"), pa.scalar(None, pa.string()), items).cast(type_.value_type)
    return pa.ListArray.from_arrays(offsets, values, type=type_, mask=texts.is_null())
