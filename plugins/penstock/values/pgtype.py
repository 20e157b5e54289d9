"""A PostgreSQL type as the catalog describes it: enough to choose a lake type without asking the server again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TYPMOD_HEADER = 4
"""What the typmod of a length, or of a numeric, has on top of it."""


@dataclass(frozen=True, slots=True)
class PgType:
    """Describe one column's type.

    `kind` is `pg_type.typtype` (`b` base, `d` domain, `e` enum, `c` composite, `r` range, `m` multirange, `p` pseudo).
    `name` is the unqualified `typname`, `schema` its namespace; `typmod` is -1 where there is none.
    A domain has a `base` (whose typmod is the domain's own), an array has an `element`.
    Source: PostgreSQL documentation, "pg_type".
    """

    oid: int
    typmod: int
    schema: str
    name: str
    kind: str
    base: PgType | None = None
    element: PgType | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the ledger and plan files."""
        data: dict[str, Any] = {
            "oid": self.oid,
            "typmod": self.typmod,
            "schema": self.schema,
            "name": self.name,
            "kind": self.kind,
        }
        if self.base is not None:
            data["base"] = self.base.to_json()
        if self.element is not None:
            data["element"] = self.element.to_json()
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PgType:
        """Read what `to_json` wrote."""
        base, element = data.get("base"), data.get("element")
        return cls(
            data["oid"],
            data["typmod"],
            data["schema"],
            data["name"],
            data["kind"],
            cls.from_json(base) if base else None,
            cls.from_json(element) if element else None,
        )


def numeric_digits(typmod: int) -> tuple[int, int] | None:
    """Return precision and scale of a numeric's typmod, None for one without; the scale may be below zero (PostgreSQL 15+).

    Source: PostgreSQL documentation, "Arbitrary Precision Numbers"; the typmod packs 16 bits of precision and a
    signed scale of 11 bits behind a header of 4.
    """
    if typmod < TYPMOD_HEADER:
        return None
    packed = typmod - TYPMOD_HEADER
    return packed >> 16 & 0xFFFF, (packed & 0x7FF ^ 0x400) - 0x400
