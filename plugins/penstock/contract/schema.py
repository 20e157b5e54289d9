"""The columns of landing files: contract version 1 for changes, version 3 for the rows of a copy.

Every value of a change is the text that PostgreSQL rendered under pinned settings, so capture can never fail on a
type. NULL, unknown (unchanged TOAST, listed in `unchanged`) and the empty string are three different things.
A copy's file has the table's columns, as values where every text of the file is one of its lake type, under the ids
that Iceberg gives them in a new table: such a file can be a data file of the lake as it is.
"""

from collections.abc import Mapping, Sequence
from itertools import count

import pyarrow as pa

from penstock.values.lake_types import MISFITS_COLUMN
from penstock.values.parsed import arrow_type

CONTRACT_VERSION = 1
COPY_VERSION = 3
CONTRACT_VERSIONS = (CONTRACT_VERSION, COPY_VERSION)
CONTRACT_KEY = b"penstock.contract"
_FIELD_ID = b"PARQUET:field_id"
_MISFITS = pa.map_(pa.string(), pa.string())

NO_COLUMNS_FIELD = "_no_columns"
"""The one field, always NULL, of `new` and `old` where the relation publishes no column: Parquet has no empty group."""


def landing_schema(column_names: Sequence[str]) -> pa.Schema:
    """Return the Arrow schema of the landing files of a relation with these columns."""
    row = pa.struct([pa.field(name, pa.string()) for name in column_names or (NO_COLUMNS_FIELD,)])
    return pa.schema(
        [
            pa.field("commit_lsn", pa.int64(), nullable=False),
            pa.field("ordinal", pa.int64(), nullable=False),
            pa.field("op", pa.string(), nullable=False),
            pa.field("committed_at", pa.timestamp("us", tz="UTC")),
            pa.field("xid", pa.int64()),
            pa.field("origin", pa.string()),
            pa.field("new", row),
            pa.field("old", row),
            pa.field("old_kind", pa.string()),
            pa.field("unchanged", pa.list_(pa.field("element", pa.string()))),
        ],
        metadata={CONTRACT_KEY: str(CONTRACT_VERSION).encode()},
    )


def copy_schema(column_names: Sequence[str], typed: Mapping[str, str]) -> pa.Schema:
    """Return the Arrow schema of a copy's rows; `typed` gives the lake types of the columns that are no texts."""
    whole = copy_file_schema(column_names, typed)
    return whole.remove(len(whole) - 1)


def copy_file_schema(column_names: Sequence[str], typed: Mapping[str, str]) -> pa.Schema:
    """Return the schema of their file, which ends with `_misfits`, always NULL, as the lake's tables do."""
    names = column_names or (NO_COLUMNS_FIELD,)
    types = [arrow_type(typed[name]) if name in typed else pa.string() for name in names]
    ids = field_ids(types)
    return pa.schema(
        [_with_ids(*each) for each in zip((*names, MISFITS_COLUMN), (*types, _MISFITS), ids, strict=True)],
        metadata={CONTRACT_KEY: str(COPY_VERSION).encode()},
    )


def field_ids(types: Sequence[pa.DataType]) -> list[tuple[int, ...]]:
    """Return the ids of columns of these types, then of `_misfits`, in a new table: each one's own, then what is in it.

    Source: Iceberg, org.apache.iceberg.types.AssignFreshIds: a struct's fields come first, then what is in them.
    """
    inner = count(len(types) + 2)
    every = enumerate((*types, _MISFITS), start=1)
    return [(at, *(next(inner) for _ in range(_parts(type_)))) for at, type_ in every]


def _parts(type_: pa.DataType) -> int:
    return 2 if pa.types.is_map(type_) else 1 if pa.types.is_list(type_) else 0


def _with_ids(name: str, type_: pa.DataType, ids: Sequence[int]) -> pa.Field:
    if pa.types.is_list(type_):
        type_ = pa.list_(_with_ids("element", type_.value_type, ids[1:]))
    elif pa.types.is_map(type_):
        key = _with_ids("key", type_.key_type, ids[1:2]).with_nullable(False)
        type_ = pa.map_(key, _with_ids("value", type_.item_type, ids[2:]))
    return pa.field(name, type_, metadata={_FIELD_ID: str(ids[0])})
