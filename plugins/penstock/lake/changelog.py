"""A table's changelog: every landed change as one row, with its old and new values typed as in the mirror.

An interval of commit time is replaced as a whole. A field of `new` and `old` keeps the type that it was first given:
what does not fit it, now or after a change of type at the source, stands as exact text in the map of misfits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.lake.columns import MISFITS_TYPE, LakeColumn
from penstock.lake.ddl import identifier
from penstock.values.lake_types import wider

IMAGES = ("new", "old")
MISSING = "S"
"""The `op` of a row that stands for a whole transaction which was skipped: the changelog lacks its changes."""
PARTITIONED_BY = "days(committed_at)"
ORDERED_BY = "era, commit_lsn, ordinal"

UNKNOWN = "unknown"
PLAIN_COLUMNS = (
    ("era", "int"),
    ("commit_lsn", "bigint"),
    ("ordinal", "bigint"),
    ("op", "string"),
    ("committed_at", "timestamp"),
    ("xid", "bigint"),
    ("origin", "string"),
    ("old_kind", "string"),
    (UNKNOWN, "array<string>"),
)
"""The columns beside the images, by name and lake type."""


@dataclass(frozen=True, slots=True)
class MissingTransaction:
    """Name a transaction of the interval that no landing file has; the time is its commit's, or the first that it may be."""

    era: int
    commit_lsn: int
    xid: int | None
    committed_at: datetime


def changelog_columns(fields: Sequence[LakeColumn]) -> tuple[LakeColumn, ...]:
    """Return the columns of the changelog of a table with these columns."""
    image = f"struct<{', '.join(f'{identifier(field.name)}: {field.type}' for field in fields)}>"
    *change, old_kind, unknown = (LakeColumn(*each) for each in PLAIN_COLUMNS)
    images = (LakeColumn(name, image) for name in IMAGES)
    return (*change, *images, old_kind, unknown, *(LakeColumn(f"{name}_misfits", MISFITS_TYPE) for name in IMAGES))


def united(present: Sequence[LakeColumn], wanted: Sequence[LakeColumn]) -> tuple[LakeColumn, ...]:
    """Return the fields that a changelog will have: those that are there, some of a wider type, then the new ones."""
    asked = {column.name: column for column in wanted}
    there = {column.name for column in present}
    kept = (
        asked[each.name] if each.name in asked and wider(each.type, asked[each.name].type) else each for each in present
    )
    return (*kept, *(column for column in wanted if column.name not in there))
