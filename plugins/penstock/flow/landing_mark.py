"""Is the zone behind `landing.uri` the one in which the pipeline lands? A small file in it bears a name that the ledger knows.

A second checkout with another `landing.uri`, or a volume that is not mounted, would land where nobody else looks, and free the WAL
of it. Bootstrap marks the zone once, before the slot is made; whoever lands, merges or deletes there asks first. Files that
are copied elsewhere bring the mark along.
"""

from secrets import token_hex

from penstock.errors import LakeError
from penstock.flow.context import Context
from penstock.landing import layout
from penstock.ledger.records import PipelineRecord


def ensure(ctx: Context) -> None:
    """Mark the zone, unless it is marked; one bootstrap at a time. Raises LakeError("landing-changed")."""
    record, found = ctx.ledger.pipelines.get(ctx.name), _found(ctx)
    if record.landing_marked or (found is not None and found != record.landing_mark):
        _require(ctx, record, found)
        return
    mark = found or token_hex(16)  # another one after a kill: the zone of before may have been another
    ctx.ledger.pipelines.note_landing(ctx.name, mark, marked=False)
    if found is None:
        ctx.landing.write_text(layout.mark_file(ctx.name), f"{mark}\n{_SAID}\n")
    ctx.ledger.pipelines.note_landing(ctx.name, mark, marked=True)


def require(ctx: Context, record: PipelineRecord | None = None) -> None:
    """Raise LakeError("landing-changed") where the zone is not the one that is marked; without a mark there is nothing landed.

    `record` is what the ledger knows of the pipeline, where that was read just now.
    """
    record = record or ctx.ledger.pipelines.get(ctx.name)
    if record.landing_marked:
        _require(ctx, record, _found(ctx))


def _require(ctx: Context, record: PipelineRecord, found: str | None) -> None:
    if found == record.landing_mark:
        return
    uri = ctx.landing.uri(layout.mark_file(ctx.name))
    got = (
        "there is no such file"
        if found is None
        else "that is the mark of another ledger's pipeline, or of another zone"
    )
    raise LakeError(
        "landing-changed",
        f"expected the landing zone in which pipeline {ctx.name} lands, whose mark is in {uri}, but {got}; nothing was landed: "
        "mount it, or set landing.uri to that zone; who moved it copies all its files, the mark too",
    )


def _found(ctx: Context) -> str | None:
    """Return the mark of the zone, None for one without; raises LakeError("landing-unreachable")."""
    path = layout.mark_file(ctx.name)
    return ctx.landing.read_text(path).partition("\n")[0] if ctx.landing.exists(path) else None


_SAID = (
    "By this name the ledger knows the landing zone. Do not delete or change this file; copy it when you move the zone."
)
