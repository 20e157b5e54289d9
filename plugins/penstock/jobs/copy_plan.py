"""The copy that Airflow orders of Spark: ranges of heap blocks to land, as JSON next to the landing zone."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.codec import JsonForm
from penstock.contract.manifest import Typed


@dataclass(frozen=True, slots=True)
class CopyRange:
    """Order one task of a copy, or of a fetch: heap blocks `[first_block, last_block)` of one relation, landed as one file.

    `last_block` None means to the end. `relation` is the heap to read: a leaf of a partitioned table, else the table.
    `where` is the publication's row filter, or None. `typed` pairs the columns to be landed as values with their lake
    types; a range with a text that is none is landed as texts. `reals` are columns of type `real`. A `plain` range is a whole
    relation over which no query can be planned: it is read by its name. In a fetch, the columns
    have these `attnums`, and their values are landed as changes that were committed at `commit_lsn`.
    """

    oid: int
    relation_schema: str
    relation_name: str
    columns: tuple[str, ...]
    first_block: int
    last_block: int | None
    where: str | None
    path: str
    typed: Typed = ()
    attnums: tuple[int, ...] = ()
    commit_lsn: int | None = None
    reals: tuple[str, ...] = ()
    plain: bool = False


@dataclass(frozen=True, slots=True)
class CopyPlan(JsonForm):
    """Order one copy: every range is read in the exported snapshot `snapshot_name`, and landed at its path, within `seconds`."""

    pipeline: str
    attempt: str
    landing_uri: str
    result_folder: str
    snapshot_name: str
    parallel: int
    batch_bytes: int
    ranges: tuple[CopyRange, ...]
    landing_options: dict[str, str] = field(default_factory=dict)
    seconds: int = 86400
