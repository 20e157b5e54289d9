"""The verbs that repair, and the one that ends a pipeline. Each imports what it needs when it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import DryRun, Json, Name, TableNames

if TYPE_CHECKING:
    from penstock.cli.context import Answer
    from penstock.flow.context import Context
    from penstock.flow.spark_job import Submit


def resume(
    name: Name, table: Annotated[str | None, typer.Option(help="Resume this paused table, as schema.table.")] = None
) -> None:
    """Resume a halted pipeline, or one paused table, after the repair that its runbook describes."""
    from penstock.cli import context
    from penstock.flow.recover import resume

    def work_on(ctx: Context) -> None:
        if table is None:
            resume.resume(ctx)
        else:
            resume.resume_table(ctx, table)

    context.answer(name, work_on)


def skip_transaction(name: Name, dry_run: DryRun = True, json: Json = False) -> None:
    """Find the transaction that the source cannot decode, leave it out, and pause the tables that it touched."""
    from penstock.cli import context
    from penstock.flow.capture import skip_transaction

    context.answer(
        name,
        lambda ctx: context.Answer({"dry_run": dry_run, "said": skip_transaction.skip_or_show(ctx, dry_run=dry_run)}),
        json=json,
    )


def recover(
    name: Name,
    dry_run: DryRun = True,
    merge_first: Annotated[
        bool, typer.Option("--merge-first/--no-merge-first", help="Merge what is landed before the slot is left.")
    ] = True,
) -> None:
    """Make a new slot for a broken pipeline, copy every table again, and switch to the new tables in one cut."""
    from penstock.cli import context
    from penstock.flow.recover import run
    from penstock.flow.sequences import RECOVERY, carry_out

    def work_on(ctx: Context) -> None:
        if run.start(ctx, dry_run=dry_run):
            carry_out(ctx, RECOVERY, context.submitter(ctx), merge_first=merge_first)

    context.answer(name, work_on, works=True)


def resync(
    name: Name,
    tables: TableNames = None,
    new: Annotated[
        bool,
        typer.Option(
            "--new", help="Copy all tables that wait for a copy: those that joined, and those paused by a change."
        ),
    ] = False,
    dry_run: DryRun = True,
    json: Json = False,
) -> None:
    """Copy tables again while everything else continues, and switch to the new ones in one cut."""
    if bool(tables) == new:
        raise typer.BadParameter("expected either --table, once or more, or --new")
    from penstock.cli import context
    from penstock.flow.load import run
    from penstock.flow.load.resync import resync_lines

    def work_on(ctx: Context) -> Answer:
        chosen = None if new else tables
        lines = resync_lines(ctx, chosen)
        return _rebuilt(ctx, lines, lambda submit: run.resync(ctx, chosen, submit), dry_run=dry_run)

    context.answer(name, work_on, json=json, works=True)


def replay(
    name: Name,
    tables: TableNames = None,
    *,
    from_: Annotated[
        str | None, typer.Option("--from", help="Begin with the newest copy at or before this LSN or time.")
    ] = None,
    upto: Annotated[str | None, typer.Option(help="A shadow's LSN or time; without it, all that is landed.")] = None,
    shadow: Annotated[str | None, typer.Option(help="Make <table>__<suffix> and leave the table as it is.")] = None,
    dry_run: DryRun = True,
    json: Json = False,
) -> None:
    """Rebuild tables from the landing zone: in place, in one cut, or as of any position under another name."""
    from penstock.cli import context
    from penstock.flow.load import run
    from penstock.flow.load.replay_request import sources

    def work_on(ctx: Context) -> Answer:
        request = run.Replay(tuple(tables or ()), from_, upto, shadow)
        lines = [source.line() for source in sources(ctx, request)]
        return _rebuilt(ctx, lines, lambda submit: run.replay(ctx, request, submit), dry_run=dry_run)

    context.answer(name, work_on, json=json, works=True)


def _rebuilt(ctx: Context, lines: list[str], build: Callable[[Submit], list[str]], *, dry_run: bool) -> Answer:
    """Say what would be rebuilt, and unless that is all, build it and let it take its names."""
    from penstock.cli import context
    from penstock.flow.load import run

    for line in lines:
        ctx.progress(line)
    switched = None
    if not dry_run:
        submit = context.submitter(ctx)
        switched = run.switch(ctx, build(submit), submit)
    return context.Answer({"dry_run": dry_run, "plan": lines, "switched": switched})


def abandon(name: Name, tables: TableNames = None, dry_run: DryRun = True) -> None:
    """End the open rebuilds of tables, and drop what they have built; the tables stay as they are."""
    from penstock.cli import context
    from penstock.flow.load import run

    context.answer(name, lambda ctx: run.abandon(ctx, tables or (), dry_run=dry_run))


def teardown(name: Name, dry_run: DryRun = True, json: Json = False) -> None:
    """Drop slot and publication; the lake and the landing zone stay."""
    from penstock.cli import context
    from penstock.flow.recover import teardown

    context.answer(
        name,
        lambda ctx: context.Answer({"dry_run": dry_run, "statements": teardown.teardown(ctx, dry_run=dry_run)}),
        json=json,
    )


VERBS = (resume, resync, replay, abandon, recover, skip_transaction, teardown)
