"""The columns of landing files: contract version 1 for changes, version 2 for the rows of a copy.

Every value of a change is the text that PostgreSQL rendered under pinned settings, so capture can never fail on a
type. NULL, unknown (unchanged TOAST, listed in `unchanged`) and the empty string are three different things.
A copy's row is a new image and nothing else; where every text of a file is a value of its lake type, it is that value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from penstock.values.parsed import arrow_type

CONTRACT_VERSION = 1
COPY_VERSION = 2
CONTRACT_VERSIONS = (CONTRACT_VERSION, COPY_VERSION)
CONTRACT_KEY = b"penstock.contract"

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
    """Return the Arrow schema of a copy's files; `typed` gives the lake types of the columns that are no texts."""
    fields = [
        pa.field(name, arrow_type(typed[name]) if name in typed else pa.string())
        for name in column_names or (NO_COLUMNS_FIELD,)
    ]
    return pa.schema(
        [pa.field("new", pa.struct(fields), nullable=False)], metadata={CONTRACT_KEY: str(COPY_VERSION).encode()}
    )
