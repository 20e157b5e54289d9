"""The columns of a landing file, contract version 1.

Every value is the text that PostgreSQL rendered under pinned settings, so capture can never fail on a
type. NULL, unknown (unchanged TOAST, listed in `unchanged`) and the empty string are three different things.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

CONTRACT_VERSION = 1
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
