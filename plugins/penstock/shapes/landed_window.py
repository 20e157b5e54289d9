"""What one window left in the landing zone: its files, and the shapes of the relations that the stream announced."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.contract.manifest import FileEntry
from penstock.shapes.ddl_message import DdlLog
from penstock.wire.columnar import Relation, Totals


@dataclass(frozen=True)
class Landed:
    """Say what one window left in the landing zone."""

    files: tuple[FileEntry, ...]
    relations: dict[tuple[int, int], Relation]
    totals: Totals
    old_nulls: Mapping[int, frozenset[str]]
    """The columns that are NULL in an old row, by relation."""
    after: Mapping[tuple[int, int], frozenset[int]] = field(default_factory=dict)
    """After how many logged events of its table each relation version was announced."""
    ddl: DdlLog | None = None
    """What the source's event trigger logged, None where the window was read without it."""
