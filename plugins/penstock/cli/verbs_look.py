"""The verbs that look and change nothing. Each imports what it needs when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import All, Json, Mode, OneOrAll, OnlyTables, Status, pipeline_names, slugs

if TYPE_CHECKING:
    from penstock.cli.context import Answer
    from penstock.flow.context import Context


def list_(json: Json = False) -> None:
    """Name every pipeline with its file, its source and its tables; connect to nothing."""
    from penstock.cli import listing

    listing.show(json=json)


def status(name: OneOrAll = None, every: All = False, json: Json = False) -> None:
    """Show where the pipeline stands: open alarms, freshness, what stands still, slot, tables, last cut; status 4 or 6 where not all is well."""
    from penstock.cli import context, printing, start
    from penstock.errors import LedgerError
    from penstock.flow import status

    def work_on(ctx: Context) -> Answer:
        try:
            found = status.status(ctx)
        except LedgerError as error:
            return start.starting(ctx, error)
        title = f"{ctx.name}: {found.pipeline.state}"
        urgency = Status.DECIDE if found.waits_for_a_person else Status.DONE if found.is_well else Status.FOUND
        return context.Answer(status.plain(found), lambda: printing.show_lines(title, status.lines(found)), urgency)

    context.answer(name, work_on, every=every, json=json)


def health(name: OneOrAll = None, every: All = False, json: Json = False) -> None:
    """Look at the slot and its surroundings as slot health does, and change nothing; status 4 where there is an alarm."""
    from penstock.cli import context, printing
    from penstock.flow.health import report, run
    from penstock.units import several

    def work_on(ctx: Context) -> Answer:
        verdict = run.judge_pipeline(ctx)
        lines = report.lines(verdict)
        return context.Answer(
            report.plain(verdict),
            lambda: printing.show_lines(f"{ctx.name}: {several(len(verdict.findings), 'alarm')}", lines),
            Status.FOUND if verdict.findings else Status.DONE,
        )

    context.answer(name, work_on, every=every, json=json)


def verify(
    name: OneOrAll = None,
    table: OnlyTables = None,
    *,
    mode: Annotated[
        Mode, typer.Option(help="`whole`: all rows; `sample`: the share of each table that is due.")
    ] = "whole",
    now: Annotated[
        bool, typer.Option("--now", help="Compare what is there now, for a source without writers; change nothing.")
    ] = False,
    every: All = False,
    json: Json = False,
) -> None:
    """Compare source and lake at one exact position, while both continue; capture and merge to it first."""
    if now and mode != "whole":
        raise typer.BadParameter("--now compares all rows: leave out --mode sample")
    from penstock.cli import context, printing
    from penstock.errors import PenstockError
    from penstock.flow.guards import record_errors
    from penstock.flow.load import run as rebuild
    from penstock.flow.merge import run as merge
    from penstock.flow.verify import run

    def work_on(ctx: Context) -> Answer:
        def merge_now() -> None:
            merge.merge(ctx, context.submitter(ctx))

        if now:
            found = run.verify_now(ctx, tables=table or ())
        else:
            found = run.verify(ctx, tables=table or (), mode=mode, merge=merge_now)
        if found.differing and not now and ctx.pipeline.verify.on_difference == "resync":
            submit = context.submitter(ctx)
            rebuild.switch(ctx, rebuild.resync(ctx, found.differing, submit), submit)
        if not json:
            printing.show_counts(ctx.name, found.summary())
        try:
            with record_errors(ctx):
                run.require_equal(found.differing, found.lsn, found.unreadable)
        except PenstockError as error:
            return context.failed_with(ctx.name, error, found.summary())
        return context.Answer(found.summary())

    context.answer(name, work_on, every=every, json=json)


def runbook(
    slug: Annotated[
        str | None,
        typer.Argument(
            help="The condition, as an error or an alarm names it.", autocompletion=slugs, show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(
            help="Fill in this pipeline's name.", metavar="pipeline", autocompletion=pipeline_names, show_default=False
        ),
    ] = None,
    path: Annotated[bool, typer.Option("--path", help="Print where the page lies instead.")] = False,
) -> None:
    """Print the runbook of a condition, or, without one, every condition in one line."""
    from penstock.cli import printing
    from penstock.conditions import CONDITIONS, runbook_text
    from penstock.conditions import runbook as place
    from penstock.config.paths import home

    if slug is None:
        printing.show_table(("runbook", "meaning"), ((each, known.meaning) for each, known in CONDITIONS.items()))
        return
    known = _condition(slug)
    page = home() / place(known).partition("#")[0]
    if not page.is_file():
        said = f"expected the runbook at {page}, found none; set PENSTOCK_HOME to the project folder"
        raise typer.BadParameter(said)
    if path:
        typer.echo(page)
    else:
        text = runbook_text(home(), known)
        printing.show_document(text if name is None else text.replace("<pipeline>", name))


def _condition(named: str) -> str:
    """Return the condition that a word, a slug in brackets or the place of a runbook names; raises BadParameter."""
    from penstock.conditions import CONDITIONS
    from penstock.config.store_options import nearest

    slug = named.strip("[]").rpartition("/")[2].rpartition("#")[2].removesuffix(".md")
    if slug not in CONDITIONS:
        said = nearest(slug, CONDITIONS)
        hint = said if said.startswith("did") else "penstock runbook lists all"
        raise typer.BadParameter(f"expected the name of a condition, got {named!r}; {hint}")
    return slug


VERBS = (list_, status, health, verify, runbook)
