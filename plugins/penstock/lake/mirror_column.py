"""What a column of a mirrored table is: its name and number at the source, its type, and what older rows show in it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.values.pgtype import PgType


@dataclass(frozen=True, slots=True)
class MirrorColumn:
    """Describe one column of a target table.

    `name` is the field's name in landing files and in the lake. `key` marks the replica identity.
    `missing_text` is PostgreSQL's text of the value that rows written before the column existed show
    (its fast default), or None for NULL.
    """

    name: str
    attnum: int
    type: PgType
    key: bool = False
    missing_text: str | None = None
