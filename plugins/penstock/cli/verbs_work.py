"""The verbs of everyday work, which the DAGs do by schedule. Each imports what it needs when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import All, DryRun, Json, Name, OneOrAll, OnlyTables
from penstock.units import several

if TYPE_CHECKING:
    from penstock.cli.context import Answer
    from penstock.flow.context import Context

_HOLD_SECONDS = 3600.0  # what another fill of the pipeline may take


def bootstrap(name: Name) -> None:
    """Create publication and slot, copy every table, and publish the first cut."""
    from penstock.cli import context
    from penstock.flow.sequences import BOOTSTRAP, carry_out

    context.answer(name, lambda ctx: carry_out(ctx, BOOTSTRAP, context.submitter(ctx)), works=True)


def capture(name: OneOrAll = None, every: All = False, json: Json = False) -> None:
    """Land the slot's changes until caught up, or until the time budget ends."""
    from penstock.cli import context, printing
    from penstock.flow.capture import run

    def work_on(ctx: Context) -> Answer:
        counts = run.capture(ctx).summary()
        return context.Answer(counts, lambda: printing.show_counts(ctx.name, counts))

    context.answer(name, work_on, every=every, json=json, works=True)


def merge(
    name: OneOrAll = None,
    force: Annotated[bool, typer.Option("--force", help="Publish a cut even when nothing changed.")] = False,
    linger: Annotated[
        bool, typer.Option("--linger", help="Keep the Spark application as merge.linger says, for what is landed next.")
    ] = False,
    every: All = False,
    json: Json = False,
) -> None:
    """Merge all staged windows into the lake and publish them as one cut."""
    from penstock.cli import context, printing
    from penstock.flow.merge import run
    from penstock.flow.merge.linger import Lingering, require_linger

    if linger and every:
        raise typer.BadParameter("--linger keeps one pipeline's application: leave out --all")

    def work_on(ctx: Context) -> Answer | None:
        if linger:
            require_linger(ctx)
            Lingering(ctx, context.submitter(ctx)).run(force=force)
            return None
        attempt = run.merge(ctx, context.submitter(ctx), force=force)
        said = "nothing was due" if attempt is None else f"published a cut, attempt {attempt}"
        return context.Answer({"attempt": attempt}, lambda: printing.show(f"{ctx.name}: {said}"))

    context.answer(name, work_on, every=every, json=json, works=True)


def changelog(
    name: Name,
    from_: Annotated[
        str, typer.Option("--from", help="Where the interval begins: ISO 8601, in UTC if it has no zone.")
    ],
    to: Annotated[str, typer.Option(help="Where it ends, itself not included.")],
    json: Json = False,
) -> None:
    """Fill an interval of commit time in every table's changelog, in place of what was there."""
    from penstock.cli import context, printing
    from penstock.flow.changelog import coverage, run

    def work_on(ctx: Context) -> Answer:
        interval = coverage.parse(from_, to)
        filled = run.fill(ctx, interval, context.submitter(ctx), wait=_HOLD_SECONDS)
        data = {"interval": str(interval), "changes": filled.rows, "changelogs": len(filled.tables)}
        text = f"{interval}: {several(filled.rows, 'change')} in {several(len(filled.tables), 'changelog')}"
        return context.Answer(data, lambda: printing.show(text))

    context.answer(name, work_on, json=json)


def maintain(
    name: OneOrAll = None,
    table: OnlyTables = None,
    dry_run: DryRun = False,
    every: All = False,
    json: Json = False,
) -> None:
    """Compact tables, expire snapshots, and delete old files and records, on lake, landing zone and ledger."""
    from penstock.cli import context
    from penstock.flow.maintain import run

    def work_on(ctx: Context) -> Answer:
        done = run.maintain(ctx, context.submitter(ctx), tables=table or (), dry_run=dry_run)
        return context.Answer({"dry_run": dry_run, "report": None if done is None else done.to_json()})

    context.answer(name, work_on, every=every, json=json)


VERBS = (bootstrap, capture, merge, changelog, maintain)
