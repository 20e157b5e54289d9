"""What each rule costs, and what readers of the lake will see of it. Pure.

The rules are those by which capture follows a change; whether one applies is decided there, and only explained here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.config.model import Pipeline
from penstock.shapes.column_changes import Rule

Outcome = Literal["free", "copies", "pauses", "loses"]
ORDER: tuple[Outcome, ...] = ("free", "copies", "pauses", "loses")
"""From what concerns nobody to what concerns most."""
EXIT_STATUS: Mapping[Outcome, int] = {"free": 0, "copies": 1, "pauses": 2, "loses": 2}


@dataclass(frozen=True, slots=True)
class Effect:
    """Say what a rule costs, what readers see, and how far that concerns anybody."""

    outcome: Outcome
    cost: str
    readers: str


METADATA = "metadata: no data file is written"
_WITHOUT_ROWS = Effect(
    "free",
    "deletion vectors of its rows: no data file is written",
    "the table without the rows of the partition, from a cut right after",
)
EFFECTS: Mapping[Rule, Effect] = {
    "add-column": Effect("free", METADATA, "the new column; rows from before show its constant default, or NULL"),
    "rename-column": Effect("free", METADATA, "the column under its new name; older cuts keep the old name"),
    "drop-column": Effect("free", METADATA, "the column still, marked as dropped, with NULL in rows written since"),
    "retype-column": Effect("free", METADATA, "the same values, in a column as wide as the new type needs"),
    "rename-table": Effect(
        "free", METADATA, "the table under its new name from the cut on, and no table under the old one"
    ),
    "drop-partition": _WITHOUT_ROWS,
    "truncate-partition": _WITHOUT_ROWS,
    "replica-identity": Effect("free", METADATA, "the table as before; changes are matched by the same key"),
    "change-key": Effect("free", METADATA, "the table as before; changes from here on are matched by the new key"),
    "drop-key": Effect(
        "pauses",
        METADATA,
        "inserts only: the server refuses the application's updates and deletes until there is a key",
    ),
}
_NAME_KEPT = Effect("free", METADATA, "the table under the name that it has in the lake")
_ROWS_KEPT = Effect("free", METADATA, "the table with the rows of the partition, which only the lake has from then on")
_LOST = Effect("loses", METADATA, "no such column any more: its values are left in older cuts only")


def effect(rule: Rule, pipeline: Pipeline) -> Effect:
    """Return what a rule means under a pipeline's settings."""
    if rule == "drop-column" and pipeline.lake.on_dropped_column == "drop":
        return _LOST
    if rule in ("drop-partition", "truncate-partition") and pipeline.lake.on_dropped_partition == "keep":
        return _ROWS_KEPT
    if rule == "rename-table" and pipeline.lake.on_renamed_table == "keep":
        return _NAME_KEPT
    return EFFECTS[rule]


def worst(outcomes: list[Outcome]) -> Outcome:
    """Return the outcome that concerns most."""
    return max(outcomes, key=ORDER.index, default="free")
