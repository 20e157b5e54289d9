"""Make tables anew beside the ones that readers see, and let them take their names in one cut.

`resync` copies tables again under a snapshot of their own; `replay` begins with the copy that is there, in place or as
a shadow at a place of its own, as of any position. Nothing of it is part of a merge but the switch, so all other
tables go on, and so do these. Every step looks at what is there: run the same verb again to go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from penstock.errors import Directive, LedgerError, PenstockError
from penstock.flow import capture, merge, rebuild_build, rebuild_copy
from penstock.flow import rebuild_requests as requests
from penstock.flow.context import Context
from penstock.flow.rebuild_requests import Replay
from penstock.flow.spark_job import Submit
from penstock.lake.pointers import rebuilt
from penstock.ledger import new_attempt
from penstock.ledger.rebuilds import NewRebuild
from penstock.ledger.records import RebuildRecord

_TRIES = 5
_PAUSE_SECONDS = 2.0


def resync(ctx: Context, tables: Sequence[str] | None, submit: Submit) -> list[str]:
    """Copy tables, given as `schema.table`, anew and build them; return their rebuilds, which wait for the next merge.

    None means all tables that are new in a running pipeline. The lake's tables stay as they are until they are switched.
    Raises ConfigError, LedgerError ("table-unknown", "rebuild-open", "work-under-way", "pipeline-halted"), SourceError,
    LakeError.
    """
    capture.running(ctx)
    records = requests.to_copy(ctx, tables)
    with _held(ctx, [f"{record.schema}.{record.name}" for record in records]):
        ids = _started(ctx, "resync", [record.oid for record in records], lambda oids: _new_resyncs(ctx, oids))
        rebuild_copy.copy(ctx, ids, submit)
        rebuild_build.build(ctx, ids, submit)
    return ids


def replay(ctx: Context, request: Replay, submit: Submit) -> list[str]:
    """Build tables anew from their copies and the windows since; return the rebuilds.

    In place they wait for the next merge; shadows are done. Raises what `rebuild_requests.look` raises, and as `resync`.
    """
    outlook = requests.look(ctx, request)
    with _held(ctx, [source.facts.schema + "." + source.facts.name for source in outlook.sources]):
        kind = "replay" if request.shadow is None else "shadow"
        orders = [source.order(new_attempt()) for source in outlook.sources]
        if kind == "shadow":
            ids = _started_shadows(ctx, orders)
        else:
            by_oid = {order.facts.oid: order for order in orders}
            ids = _started(ctx, kind, list(by_oid), lambda oids: [by_oid[oid] for oid in oids])
        rebuild_build.build(ctx, ids, submit)
    return ids


def switch(ctx: Context, ids: Sequence[str], submit: Submit) -> bool:
    """Merge until the rebuilt tables have taken their names; return whether all have.

    Another merge may do it as well. Captures first where the pipeline has not come as far as a copy's snapshot.
    """
    for _ in range(_TRIES):
        waiting = [each for each in ctx.ledger.rebuilds(ctx.name, states=["ready"]) if each.id in ids]
        if not waiting:
            break
        try:
            _capture_through(ctx, waiting)
            attempt = merge.plan(ctx, force=True)
            if attempt is not None:
                submit(merge.job(ctx, attempt))
                merge.publish(ctx, attempt)
        except PenstockError as error:
            if error.directive is not Directive.RETRY:
                raise
            ctx.progress(f"{error}; trying again")
            time.sleep(_PAUSE_SECONDS)
    done = {each.id for each in ctx.ledger.rebuilds(ctx.name, states=["done"])}
    return set(ids) <= done


def _capture_through(ctx: Context, waiting: Sequence[RebuildRecord]) -> None:
    needed = max(each.copy_lsn or 0 for each in waiting)
    while (ctx.ledger.pipeline(ctx.name).position or 0) < needed:
        capture.capture_window(ctx)


def _started(
    ctx: Context, kind: str, oids: Sequence[int], new: Callable[[Sequence[int]], list[NewRebuild]]
) -> list[str]:
    """Return the rebuilds of these tables: those that an earlier run of the verb began, and new ones."""
    open_ = [each for each in ctx.ledger.rebuilds(ctx.name) if each.kind != "shadow" and each.oid in oids]
    for each in open_:
        if each.kind != kind:
            raise LedgerError(
                "rebuild-open",
                f"expected no open rebuild of {each.qualified}, but its {each.kind} {each.id} is {each.state} since "
                f"{each.started_at:%F %T} UTC; run {each.kind} again to end it, or give it up, then start over",
            )
        ctx.progress(f"going on with the {kind} {each.id} of {each.qualified}, which is {each.state}")
    left = [oid for oid in oids if oid not in {each.oid for each in open_}]
    started = ctx.ledger.start_rebuilds(ctx.name, new(left)) if left else []
    return [each.id for each in (*open_, *started)]


def _new_resyncs(ctx: Context, oids: Sequence[int]) -> list[NewRebuild]:
    facts = requests.present_facts(ctx, oids)
    ids = {oid: new_attempt() for oid in oids}
    places = {oid: rebuilt(ctx.pipeline.namespace, facts[oid].target, ids[oid]) for oid in oids}
    return [NewRebuild(ids[oid], "resync", facts[oid], places[oid]) for oid in oids]


def _started_shadows(ctx: Context, orders: Sequence[NewRebuild]) -> list[str]:
    open_ = {each.place: each for each in ctx.ledger.rebuilds(ctx.name) if each.kind == "shadow"}
    going_on = [open_[order.place].id for order in orders if order.place in open_]
    new = [order for order in orders if order.place not in open_]
    started = ctx.ledger.start_rebuilds(ctx.name, new) if new else []
    return [*going_on, *(each.id for each in started)]


@contextmanager
def _held(ctx: Context, tables: Sequence[str]) -> Iterator[None]:
    """Let nobody else rebuild these tables meanwhile; raises LedgerError("work-under-way")."""
    if not tables:
        yield
        return
    with ctx.ledger.hold(ctx.name, *(f"rebuild of {table}" for table in tables)):
        yield
