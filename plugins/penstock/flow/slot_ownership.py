"""Is a slot of the pipeline's name the one that Penstock made for it? Pure.

The slot itself says neither who made it nor when. But the ledger knows for which pipeline, on which server, and through which position
that one was read: a slot begins at its maker's time, so one that begins beyond that position was made later, by another.
Teardown, recovery and slot health drop only what this rule calls ours.
"""

from __future__ import annotations

from penstock.ledger.records import PipelineRecord
from penstock.source.server_info import ServerFacts
from penstock.source.slot import SlotFacts


def why_not_ours(record: PipelineRecord, found: SlotFacts, server: ServerFacts) -> str | None:
    """Say why a slot of the pipeline's name is not ours to drop, or None when it is."""
    kind = f"plugin {found.plugin or 'none (a physical slot)'}, database {found.database}"
    as_made = found.plugin == "pgoutput" and found.database == record.database and not found.temporary
    elsewhere = record.system_identifier != server.system_identifier
    later = f"it begins beyond {record.position}, through which Penstock has read: another has made it anew, or reads it for long"
    reasons = (
        (record.state == "torn_down", "the pipeline is torn down, so it owns none"),
        (record.slot_intent_at is None, "this pipeline has never made one"),
        (not record.slot_made, "it was adopted, not made by Penstock"),
        (record.slot != found.name, f"the slot that Penstock made is {record.slot}"),
        (elsewhere, "this server is another one than that on which Penstock made its slot"),
        (not as_made, f"it is not one as Penstock makes: {kind}"),
        (found.synced, "it is synchronised from a primary, which alone can drop it"),
        (_begins_later(record, found), later),
    )
    return next((reason for applies, reason in reasons if applies), None)


def _begins_later(record: PipelineRecord, found: SlotFacts) -> bool:
    """Return whether a slot may have been made after the newest position of ours.

    Making one reserves the WAL from the end of that moment on. Ours keeps WAL from before our position, unless it was lost, or
    another session has read on for long.
    """
    if record.position is None or found.confirmed is None or found.confirmed <= record.position:
        return False
    return found.restart is None or found.restart >= record.position
