"""A table's changelog: every landed change as one row, with its old and new values typed as in the mirror.

An interval of commit time is replaced as a whole. A field of `new` and `old` keeps the type that it was first given:
what does not fit it, now or after a change of type at the source, stands as exact text in the map of misfits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.lake.columns import MISFITS_TYPE, LakeColumn
from penstock.lake.misfits import CastColumn, misfits_sql
from penstock.lake.quoting import identifier, literal, path
from penstock.values.casts import cast_to

IMAGES = ("new", "old")
MISSING = "S"
"""The `op` of a row that stands for a whole transaction which was skipped: the changelog lacks its changes."""
PARTITIONED_BY = "days(committed_at)"
ORDERED_BY = "era, commit_lsn, ordinal"
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def changelog_columns(fields: Sequence[LakeColumn]) -> tuple[LakeColumn, ...]:
    """Return the columns of the changelog of a table with these columns."""
    image = f"struct<{', '.join(f'{identifier(field.name)}: {field.type}' for field in fields)}>"
    return (
        LakeColumn("era", "int"),
        LakeColumn("commit_lsn", "bigint"),
        LakeColumn("ordinal", "bigint"),
        LakeColumn("op", "string"),
        LakeColumn("committed_at", "timestamp"),
        LakeColumn("xid", "bigint"),
        LakeColumn("origin", "string"),
        LakeColumn("new", image),
        LakeColumn("old", image),
        LakeColumn("old_kind", "string"),
        LakeColumn("unknown", "array<string>"),
        LakeColumn("new_misfits", MISFITS_TYPE),
        LakeColumn("old_misfits", MISFITS_TYPE),
    )


def united(present: Sequence[LakeColumn], wanted: Sequence[LakeColumn]) -> tuple[LakeColumn, ...]:
    """Return the fields that a changelog will have: those that are there, some of a wider type, then the new ones."""
    asked = {column.name: column for column in wanted}
    there = {column.name for column in present}
    kept = (asked[each.name] if _wider(each, asked.get(each.name)) else each for each in present)
    return (*kept, *(column for column in wanted if column.name not in there))


def _wider(present: LakeColumn, wanted: LakeColumn | None) -> bool:
    """Return whether Iceberg can change the type of a field in place. Source: Iceberg specification, "Schema Evolution"."""
    if wanted is None:
        return False
    old, new = (_DECIMAL.fullmatch(column.type) for column in (present, wanted))
    if old and new:
        return int(new[1]) > int(old[1]) and new[2] == old[2]
    return (present.type, wanted.type) in (("int", "bigint"), ("float", "double"))


def evolve(table: str, present: Sequence[LakeColumn], wanted: Sequence[LakeColumn]) -> list[str]:
    """Return the statements that make a changelog's fields, by its quoted name, those that `united` returns."""
    changed = [(image, new) for old, new in zip(present, wanted, strict=False) if old != new for image in IMAGES]
    statements = [f"alter table {table} alter column {path(image, new.name)} type {new.type}" for image, new in changed]
    added = wanted[len(present) :]
    return [*statements, add_fields(table, added)] if added else statements


def add_fields(table: str, added: Sequence[LakeColumn]) -> str:
    """Return the statement that adds fields to `new` and `old` of a changelog, by its quoted name."""
    fields = ", ".join(f"{path(image, column.name)} {column.type}" for image in IMAGES for column in added)
    return f"alter table {table} add columns ({fields})"


def order_rows(table: str) -> str:
    """Return the statement that keeps a changelog's files in commit order."""
    return f"alter table {table} write locally ordered by {ORDERED_BY}"


def delete_rows(table: str, condition: str) -> str:
    """Return the statement that takes rows out of a changelog, by its quoted name."""
    return f"delete from {table}\nwhere {condition}"  # noqa: S608  # the one is quoted, the other is ours


def typed_name(image: str, position: int) -> str:
    """Name the typed value of the nth field of an image in a frame that still has the texts."""
    return f"_{image}{position}"


def typed_fields(image: str, fields: Sequence[LakeColumn], there: frozenset[str]) -> dict[str, str]:
    """Return the SQL of an image's typed values by name; a field that the file lacks is NULL."""
    return {
        typed_name(image, position): (
            cast_to(path(image, field.name), field.type) if field.name in there else f"cast(null as {field.type})"
        )
        for position, field in enumerate(fields)
    }


def typed_image(image: str, fields: Sequence[LakeColumn]) -> str:
    """Return the SQL of an image made of its typed values, NULL where the change has none."""
    values = ", ".join(f"{literal(field.name)}, {typed_name(image, at)}" for at, field in enumerate(fields))
    return f"case when {identifier(image)} is not null then named_struct({values}) end"


def image_misfits(image: str, fields: Sequence[LakeColumn], there: frozenset[str]) -> str:
    """Return the SQL of the texts of an image that its typed values do not hold."""
    checked = [
        CastColumn(field.name, path(image, field.name), typed_name(image, at), field.type)
        for at, field in enumerate(fields)
        if field.name in there
    ]
    return misfits_sql(checked)
