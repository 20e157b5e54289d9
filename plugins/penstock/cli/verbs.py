"""`penstock <verb> <pipeline>`: the same use cases as the DAGs, from a shell, with or without Airflow.

A verb names its options and calls one function of `flow`. Connections come from the environment in Airflow's own form
(`AIRFLOW_CONN_<ID>`), so that one definition serves both.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from penstock import spark_zip
from penstock.cli import printing
from penstock.cli.context import home, opened, submitter, unrecorded
from penstock.cli.usage_error import OwnUsageError
from penstock.errors import ConfigError
from penstock.flow import check as check_flow
from penstock.flow import status as status_flow
from penstock.flow.capture import run as capture_flow
from penstock.flow.capture import skip_transaction as skip_flow
from penstock.flow.changelog import coverage
from penstock.flow.changelog import run as changelog_flow
from penstock.flow.health import check as health_flow
from penstock.flow.health import report as health_report
from penstock.flow.maintain import run as maintain_flow
from penstock.flow.merge import run as merge_flow
from penstock.flow.merge.linger import Lingering, require_linger
from penstock.flow.rebuild import run as rebuild_flow
from penstock.flow.rebuild.replay_request import sources as replay_sources
from penstock.flow.rebuild.resync_request import resync_lines
from penstock.flow.recover import resume as resume_flow
from penstock.flow.recover import run as recover_flow
from penstock.flow.recover import teardown as teardown_flow
from penstock.flow.sequences import BOOTSTRAP, RECOVERY, carry_out
from penstock.flow.trial import report as trial_report
from penstock.flow.trial import run as trial_flow
from penstock.flow.verify import run as verify_flow
from penstock.flow.verify.now import verify_now
from penstock.ledger.verifications import Mode
from penstock.source import ddl_trigger as trigger

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)

_HOLD_SECONDS = 3600.0  # what another fill of the pipeline may take

OnlyTables = Annotated[
    list[str] | None, typer.Option("--table", help="Only this table, as schema.table; may be repeated.")
]
TableNames = Annotated[list[str] | None, typer.Option("--table", help="A table, as schema.table; may be repeated.")]
Name = Annotated[str, typer.Argument(help="The pipeline's name, or the path of its file.")]


@app.command()
def check(name: Name) -> None:
    """Ask the source whether it is ready, and print each finding with its next step."""
    with opened(name) as ctx:
        findings = check_flow.check(ctx)
        source = f"{ctx.source.host}:{ctx.source.port}/{ctx.source.database}"
        printing.show_findings(f"{ctx.name}: {source}", findings)
        if check_flow.failures(findings):
            raise typer.Exit(1)


@app.command()
def bootstrap(name: Name) -> None:
    """Create publication and slot, copy every table, and publish the first cut."""
    with opened(name) as ctx:
        carry_out(ctx, BOOTSTRAP, submitter(ctx))


@app.command()
def capture(name: Name) -> None:
    """Land the slot's changes until caught up, or until the time budget ends."""
    with opened(name) as ctx:
        printing.show_counts(capture_flow.capture(ctx).summary())


@app.command()
def merge(
    name: Name,
    force: Annotated[bool, typer.Option(help="Publish a cut even when nothing changed.")] = False,
    linger: Annotated[
        bool, typer.Option("--linger", help="Keep the Spark application as merge.linger says, for what is landed next.")
    ] = False,
) -> None:
    """Merge all staged windows into the lake and publish them as one cut."""
    with opened(name) as ctx:
        if linger:
            require_linger(ctx)
            Lingering(ctx, submitter(ctx)).run(force=force)
        else:
            merge_flow.merge(ctx, submitter(ctx), force=force)


@app.command()
def maintain(
    name: Name,
    table: OnlyTables = None,
    dry_run: Annotated[bool, typer.Option(help="Only measure, and say what would be done.")] = False,
) -> None:
    """Compact tables, expire snapshots, and delete old files and records, on lake, landing zone and ledger."""
    with opened(name) as ctx:
        maintain_flow.maintain(ctx, submitter(ctx), tables=table or (), dry_run=dry_run)


@app.command()
def changelog(
    name: Name,
    from_: Annotated[
        str, typer.Option("--from", help="Where the interval begins: ISO 8601, in UTC if it has no zone.")
    ],
    to: Annotated[str, typer.Option(help="Where it ends, itself not included.")],
) -> None:
    """Fill an interval of commit time in every table's changelog, in place of what was there."""
    with opened(name) as ctx:
        interval = coverage.parse(from_, to)
        filled = changelog_flow.fill(ctx, interval, submitter(ctx), wait=_HOLD_SECONDS)
        printing.show(f"{interval}: {filled.rows} changes in {len(filled.tables)} changelogs")


@app.command()
def verify(
    name: Name,
    table: OnlyTables = None,
    mode: Annotated[Mode, typer.Option(help="All rows, or the share of each table that is due.")] = "whole",
    now: Annotated[
        bool, typer.Option("--now", help="Compare what is there now, for a source without writers; change nothing.")
    ] = False,
) -> None:
    """Compare source and lake at one exact position, while both continue; capture and merge to it first."""
    if now and mode != "whole":
        raise typer.BadParameter("--now compares all rows: leave out --mode sample")
    with opened(name) as ctx:

        def merge_now() -> None:
            merge_flow.merge(ctx, submitter(ctx))

        if now:
            found = verify_now(ctx, tables=table or ())
        else:
            found = verify_flow.verify(ctx, tables=table or (), mode=mode, merge=merge_now)
        printing.show_counts(found.summary())
        if found.differing and not now and ctx.pipeline.verify.on_difference == "resync":
            submit = submitter(ctx)
            rebuild_flow.switch(ctx, rebuild_flow.resync(ctx, found.differing, submit), submit)
        verify_flow.require_equal(found.differing, found.lsn, found.unreadable)


@app.command()
def status(name: Name) -> None:
    """Show where the pipeline stands: slot, windows, tables, last cut, last events."""
    with opened(name) as ctx:
        found = status_flow.status(ctx)
        printing.show_lines(f"{ctx.name}: {found.ledger.pipeline.state}", status_flow.lines(found))


@app.command()
def health(
    name: Name, json: Annotated[bool, typer.Option("--json", help="Print plain data for other tools.")] = False
) -> None:
    """Look at the slot and its surroundings as slot health does, and change nothing."""
    with opened(name) as ctx:
        verdict = health_flow.look(ctx)
        if json:
            printing.show_json(health_report.plain(verdict, ctx.pipeline.health))
        else:
            lines = health_report.lines(verdict, ctx.pipeline.health)
            printing.show_lines(f"{ctx.name}: {len(verdict.findings)} alarms", lines)


@app.command()
def resume(
    name: Name, table: Annotated[str | None, typer.Option(help="Resume this paused table, as schema.table.")] = None
) -> None:
    """Resume a halted pipeline, or one paused table, after the repair that its runbook describes."""
    with opened(name) as ctx:
        if table is None:
            resume_flow.resume(ctx)
        else:
            resume_flow.resume_table(ctx, table)


@app.command()
def skip_transaction(
    name: Name,
    dry_run: Annotated[bool, typer.Option(help="Only say which transaction it is, and what follows.")] = True,
) -> None:
    """Find the transaction that the source cannot decode, leave it out, and pause the tables that it touched."""
    with opened(name) as ctx:
        skip_flow.say(ctx, dry_run=dry_run)


@app.command()
def recover(
    name: Name,
    dry_run: Annotated[bool, typer.Option(help="Only say what was lost and what would be done.")] = True,
    merge_first: Annotated[bool, typer.Option(help="Merge what is landed before the slot is left.")] = True,
) -> None:
    """Make a new slot for a broken pipeline, copy every table again, and switch to the new tables in one cut."""
    with opened(name) as ctx:
        if recover_flow.start(ctx, dry_run=dry_run):
            carry_out(ctx, RECOVERY, submitter(ctx), merge_first=merge_first)


@app.command()
def resync(
    name: Name,
    tables: TableNames = None,
    new: Annotated[
        bool,
        typer.Option(help="Copy all tables that wait for a copy: those that joined, and those paused by a change."),
    ] = False,
    dry_run: Annotated[bool, typer.Option(help="Only say what would be done.")] = False,
) -> None:
    """Copy tables again while everything else continues, and switch to the new ones in one cut."""
    with opened(name) as ctx:
        if bool(tables) == new:
            raise ConfigError("config-invalid", "expected either --table, once or more, or --new")
        chosen = None if new else tables
        for line in resync_lines(ctx, chosen):
            ctx.progress(line)
        if not dry_run:
            submit = submitter(ctx)
            rebuild_flow.switch(ctx, rebuild_flow.resync(ctx, chosen, submit), submit)


@app.command()
def replay(
    name: Name,
    tables: TableNames = None,
    *,
    from_: Annotated[
        str | None, typer.Option("--from", help="Begin with the newest copy at or before this LSN or time.")
    ] = None,
    upto: Annotated[str | None, typer.Option(help="A shadow's LSN or time; without it, all that is landed.")] = None,
    shadow: Annotated[str | None, typer.Option(help="Make <table>__<suffix> and leave the table as it is.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Only say what would be done.")] = True,
) -> None:
    """Rebuild tables from the landing zone: in place, in one cut, or as of any position under another name."""
    with opened(name) as ctx:
        request = rebuild_flow.Replay(tuple(tables or ()), from_, upto, shadow)
        for source in replay_sources(ctx, request):
            ctx.progress(source.line())
        if not dry_run:
            submit = submitter(ctx)
            rebuild_flow.switch(ctx, rebuild_flow.replay(ctx, request, submit), submit)


@app.command()
def abandon(name: Name, tables: TableNames = None) -> None:
    """End the open rebuilds of tables, and drop what they have built; the tables stay as they are."""
    with opened(name) as ctx:
        rebuild_flow.abandon(ctx, tables or ())


@app.command()
def teardown(
    name: Name, dry_run: Annotated[bool, typer.Option(help="Only print what would be dropped.")] = True
) -> None:
    """Drop slot and publication; the lake and the landing zone stay."""
    with opened(name) as ctx:
        teardown_flow.teardown(ctx, dry_run=dry_run)


@app.command(cls=OwnUsageError)
def plan_migration(
    name: Name,
    files: Annotated[list[Path], typer.Argument(help="The migration's files, in their order.")],
    *,
    schema_file: Annotated[
        list[Path] | None,
        typer.Option(help="Take the source's schema from this dump, SQL or custom format; may be repeated."),
    ] = None,
    schema_connection: Annotated[
        str | None,
        typer.Option(help="Dump the source's schema by this connection, of a role that may read every table."),
    ] = None,
    scratch_connection: Annotated[
        str | None,
        typer.Option(help="Make the scratch database on this connection's server, instead of a server for the time."),
    ] = None,
    programs: Annotated[
        Path | None, typer.Option(help="The folder of PostgreSQL's programs, where it is not found by itself.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print plain data for other tools.")] = False,
) -> None:
    """Try a migration on a scratch database, and say what it means for the lake; status 0 free, 1 copies, 2 pauses or loses."""
    with unrecorded(name, trial_report.NOT_TRIED) as ctx:
        scratch = trial_flow.Scratch(scratch_connection, tuple(schema_file or ()), schema_connection, programs)
        found = trial_flow.try_files(ctx, files, scratch)
    if json:
        printing.show_json(trial_report.plain(found))
    else:
        for line in trial_report.lines(found):
            printing.show(line)
    raise typer.Exit(trial_report.exit_status(found))


@app.command()
def ddl_trigger(
    name: Name,
    remove: Annotated[bool, typer.Option("--remove", help="Print what removes it instead.")] = False,
) -> None:
    """Print the statement with which a superuser installs the event trigger of source.ddl_trigger, or removes it."""
    with unrecorded(name, 1):
        typer.echo(trigger.remove_statement() if remove else trigger.install_statement())


@app.command()
def package(
    target: Annotated[
        Path | None, typer.Argument(help="The zip to write; without it, where PENSTOCK_ZIP or the project has it.")
    ] = None,
) -> None:
    """Write the zip that Spark's Python processes receive: library, Spark modules and SQL."""
    path = target or spark_zip.location(home(), os.environ)
    try:
        changed = spark_zip.build(home(), path)
    except OSError as error:
        printing.say(
            f"expected to write {path}; came: {error.strerror}. Next: name a file in a folder that you may write"
        )
        raise typer.Exit(1) from None
    printing.show(f"{path}: {'written' if changed else 'unchanged'}")
