"""A source table with its place in the lake, as the ledger keeps it. Pure."""

from dataclasses import dataclass

from penstock.shapes.accepted import Accepted
from penstock.shapes.mirror_column import MirrorColumn


@dataclass(frozen=True)
class TableFacts:
    """Describe one source table, its target, and the columns of the lake's table.

    `identity` is `d`, `i`, `f` or `n`. `renamed_to` is the name that the lake's table takes in the next cut, None where it keeps
    `target`.
    """

    oid: int
    schema: str
    name: str
    target: tuple[str, ...]
    identity: str
    columns: tuple[MirrorColumn, ...]
    accepted: Accepted
    renamed_to: tuple[str, ...] | None = None

    @property
    def qualified(self) -> str:
        """Name the source table for a message."""
        return f"{self.schema}.{self.name}"
