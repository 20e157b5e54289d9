"""Who made a slot? The slot itself does not say, so the ledger and the server's facts decide. Pure."""

from __future__ import annotations

from penstock.ledger.records import PipelineRecord
from penstock.source.server_info import ServerFacts
from penstock.source.slot import SlotFacts


def why_not_ours(record: PipelineRecord, found: SlotFacts, server: ServerFacts) -> str | None:
    """Say why a slot of the pipeline's name is not ours to drop, or None when it is."""
    if record.slot_intent_at is None:
        return "this pipeline has never made one"
    if not record.slot_made:
        return "it was adopted, not made by Penstock"
    if record.system_identifier != server.system_identifier:
        return "this server is another one than that on which Penstock made its slot"
    if found.plugin != "pgoutput" or found.database != record.database or found.temporary:
        return f"it is not one as Penstock makes: plugin {found.plugin or 'none (a physical slot)'}, database {found.database}"
    if found.synced:
        return "it is synchronised from a primary, which alone can drop it"
    return None
