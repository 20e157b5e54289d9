"""The lake's side of a part of a table: the rows whose first key column lies in a range, or outside of bounds.

It must choose the rows that `KeyRange.condition` chooses at the source. Values that the lake's type cannot hold are
NULL there and lie beyond every value that it holds: below those with a minus sign or before Christ, above the rest.
"""

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from penstock.compare.pg_text import row_texts
from penstock.shapes.partition_bounds import Bound, Condition
from penstock.source.text_rows import KeyRange

_BELOW = "^-| BC$"


def within(batch: pa.RecordBatch, part: KeyRange | None) -> pa.RecordBatch:
    """Return the rows of a batch that lie in the range; a row whose key is NULL, which no source has, lies in the first."""
    if part is None or (part.lower is None and part.upper is None):
        return batch
    if not part.indexed:
        (rendered,) = row_texts(batch, [part.column])
        return batch.filter(pc.fill_null(_between(rendered, part), part.lower is None))
    values = batch.column(part.column)
    inside = _between(values, part)
    return batch.filter(inside if not values.null_count else pc.coalesce(inside, _beyond(batch, part)))


def outside(batch: pa.RecordBatch, bounds: Sequence[Bound]) -> pa.RecordBatch:
    """Return the rows of a batch that are within none of these bounds, as `text_rows.outside_bound` says it to the source."""
    for bound in bounds:
        inside = pc.fill_null(reduce(pc.and_kleene, (_met(batch, each) for each in bound)), False)
        batch = batch.filter(pc.invert(inside))
    return batch


def _met(batch: pa.RecordBatch, condition: Condition) -> pa.Array:
    values = batch.column(str(condition.column))
    if condition.values is not None:
        wanted = pa.array(
            [_value(each, values.type).as_py() for each in condition.values if each is not None], values.type
        )
        return pc.is_in(values, value_set=wanted)
    met = values.is_valid()
    if condition.low is not None:
        met = pc.and_kleene(met, pc.greater_equal(values, _value(condition.low, values.type)))
    if condition.high is not None:
        met = pc.and_kleene(met, pc.less(values, _value(condition.high, values.type)))
    return met


def _between(values: pa.Array, part: KeyRange) -> pa.Array:
    """Compare, NULL for NULL."""
    above = pc.is_valid(values) if part.lower is None else pc.greater_equal(values, _value(part.lower, values.type))
    below = pc.is_valid(values) if part.upper is None else pc.less(values, _value(part.upper, values.type))
    return pc.if_else(values.is_valid(), pc.and_(above, below), pa.scalar(None, pa.bool_()))


def _beyond(batch: pa.RecordBatch, part: KeyRange) -> pa.Array:
    """Return whether a row whose key the lake cannot hold belongs to this range, for it is an outermost one."""
    (rendered,) = row_texts(batch, [part.column])
    low = pc.fill_null(pc.match_substring_regex(rendered, _BELOW), True)
    nowhere = pa.array([False] * batch.num_rows)
    return pc.or_(
        low if part.lower is None else nowhere,
        pc.invert(low) if part.upper is None else nowhere,
    )


def _value(text: str, type: pa.DataType) -> pa.Scalar:
    """Read PostgreSQL's text of a value that the lake holds."""
    if pa.types.is_timestamp(type):
        return pa.scalar(text.removesuffix("+00")).cast(pa.timestamp("us")).cast(type)
    return pa.scalar(text).cast(type)
