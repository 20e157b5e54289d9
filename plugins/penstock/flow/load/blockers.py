"""Why a table would differ again after its copy: the stream does not carry what it needs. Pure."""

from __future__ import annotations

from penstock.errors import LakeError, PenstockError, SourceError
from penstock.shapes import object_names
from penstock.shapes.replica_identity import problem, remedy, unlogged_partitions
from penstock.shapes.source_table import SourceTable
from penstock.source.publication import PublicationFacts


def why_no_copy(table: SourceTable, events: PublicationFacts | None, *, joining: bool) -> PenstockError | None:
    """Return what forbids a table's copy under a publication that sends these events, or None.

    A table that is `joining` has never had the rows that are in no WAL.
    """
    asks_identity = events is None or events.update or events.delete
    if asks_identity and (reason := problem(table)):
        return SourceError(
            "no-usable-identity",
            f"expected {table.qualified} to log the old rows that its copy needs after it, but {reason}; "
            f"{remedy(table)}, then resync it",
        )
    if asks_identity and (reason := object_names.problem(table)):
        return SourceError(
            "no-usable-identity",
            f"expected the rows of {table.qualified} to be found after its copy, but {reason}; {object_names.remedy(table)}, then "
            "resync it",
        )
    if not joining and (unlogged := unlogged_partitions(table)):
        return LakeError(
            "schema-change",
            f"expected every partition of {table.qualified} to be in the WAL, but these are unlogged: "
            f"{', '.join(leaf.qualified for leaf in unlogged)}; set them logged or detach them, then resync it",
        )
    return None
