"""Labels of an enum that came and were renamed before anyone looked: only the landed rows still show them.

An added label is followed. But the catalog does not say whether it had another name for a while, and rows are landed with
the name of the moment. So until the stream has passed the look that saw it, landed labels are held against the enum's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.contract.manifest import FileEntry
from penstock.landing.zone import LandingZone
from penstock.shapes.shape import Shape
from penstock.shapes.source_table import SourceTable
from penstock.values.pgtype import PgType

_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)')


def grown(before: Shape, now: SourceTable) -> list[int]:
    """Return the enums of a table that have more labels than at the last look, or came since."""
    return [oid for oid, labels in now.enums.items() if len(before.enums.get(oid, ())) < len(labels)]


def strange(
    zone: LandingZone, files: Mapping[FileEntry, Sequence[int]], now: SourceTable, enums: set[int]
) -> str | None:
    """Say which column was landed with a label that its enum does not have, or None; the files come with their columns' attnums."""
    for column in now.columns:
        enum = _enum(column.type)
        if enum is None or enum not in enums:
            continue
        labels = set(now.enums[enum])
        is_array = column.type.element is not None
        for entry, attnums in files.items():
            if column.attnum in attnums and not labels.issuperset(
                _landed(zone, entry, attnums.index(column.attnum), is_array)
            ):
                return f"column {column.name} was landed with a label that its enum no longer has: it was renamed under a window"
    return None


def _enum(type: PgType) -> int | None:
    """Return the enum that a type's text consists of: itself, an array's element, a domain's base."""
    if type.kind == "e":
        return type.oid
    inner = type.element or type.base
    return None if inner is None else _enum(inner)


def _landed(zone: LandingZone, entry: FileEntry, column: int, is_array: bool) -> Iterator[str]:
    for part in ("new", "old"):
        rows = zone.columns(entry.path, [part]).column(part)
        values = pc.struct_field(rows, [column])
        for text in pc.unique(values.cast(pa.string())).drop_null().to_pylist():
            yield from _elements(text) if is_array else (text,)


def _elements(array: str) -> Iterator[str]:
    for quoted, plain in _ELEMENT.findall(array):
        if quoted or plain != "NULL":
            yield re.sub(r"\\(.)", r"\1", quoted) if quoted else plain
