"""The verbs that prepare a pipeline, its source and its cluster. Each imports what it needs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import NOT_TRIED, All, Json, Name, OneOrAll, Status, pipeline_names

if TYPE_CHECKING:
    from penstock.cli.context import Answer
    from penstock.flow.context import Context


def init(
    name: Annotated[str, typer.Argument(help="The name of the new pipeline: a-z, digits and _.")],
    connection: Annotated[str, typer.Option(help="The Airflow connection of the source database.")] = "penstock_source",
    *,
    reader: Annotated[
        str | None,
        typer.Option(
            "--reader-connection", help="The Airflow connection of the role that reads tables, if there is one."
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            "--include", help="A pattern schema.table of the tables wanted; may be repeated. Else all tables."
        ),
    ] = None,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take over a publication penstock_<name> that the tables' owner has made.")
    ] = False,
    json: Json = False,
) -> None:
    """Ask a source for its tables, and write a pipeline file with them and with what check says; never overwrites."""
    from penstock.cli import new_pipeline

    new_pipeline.init(name, connection, include or (), reader=reader, adopt=adopt, json=json)


def validate(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Pipelines, or paths of files; without one, every file of the folder.",
            metavar="pipeline",
            autocompletion=pipeline_names,
        ),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema for editors instead.")] = False,
    json: Json = False,
) -> None:
    """Read pipeline files and name every problem with its line and key; connect to nothing."""
    from penstock.cli import listing

    listing.print_schema() if schema else listing.validate(files or (), json=json)


def check(name: OneOrAll = None, every: All = False, json: Json = False) -> None:
    """Ask the source whether it is ready, and print each finding with its next step."""
    from penstock.cli import context, printing
    from penstock.flow import check

    def work_on(ctx: Context) -> Answer:
        findings = [*context.clashing(ctx, name), *check.check(ctx)]
        source = f"{ctx.source.host}:{ctx.source.port}/{ctx.source.database}"
        return context.Answer(
            {"source": source, "findings": findings},
            lambda: printing.show_findings(f"{ctx.name}: {source}", findings),
            Status.FOUND if check.failures(findings) else Status.DONE,
        )

    context.answer(name, work_on, every=every, json=json)


def start(name: Name, json: Json = False) -> None:
    """Unpause in Airflow the DAGs that belong together, and trigger the bootstrap unless it is done."""
    from penstock.cli import context
    from penstock.cli.start import start as carry_out

    context.answer(name, carry_out, json=json)


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
    json: Json = False,
) -> None:
    """Try a migration on a scratch database, and say what it means for the lake; status 0 free, 1 copies, 2 pauses or loses."""
    from penstock.cli import context, printing
    from penstock.flow.trial import report, run

    def work_on(ctx: Context) -> Answer:
        scratch = run.Scratch(scratch_connection, tuple(schema_file or ()), schema_connection, programs)
        found = run.try_files(ctx, files, scratch)

        def show() -> None:
            for line in report.lines(found):
                printing.show(line)

        return context.Answer(report.plain(found), show, report.exit_status(found))

    context.answer(name, work_on, json=json, recorded=False, failed=NOT_TRIED)


def ddl_trigger(
    name: Name,
    remove: Annotated[bool, typer.Option("--remove", help="Print what removes it instead.")] = False,
) -> None:
    """Print the statement with which a superuser installs the event trigger of source.ddl_trigger, or removes it."""
    from penstock.cli import context
    from penstock.source import ddl_trigger as trigger

    text = trigger.remove_statement() if remove else trigger.install_statement()
    context.answer(name, lambda _: context.Answer({}, lambda: typer.echo(text)), recorded=False)


def package(
    target: Annotated[
        Path | None, typer.Argument(help="The zip to write; without it, where PENSTOCK_ZIP or the project has it.")
    ] = None,
) -> None:
    """Write the zip that Spark's Python processes receive: library, Spark modules and SQL."""
    import os

    from penstock import package
    from penstock.config.paths import home

    path = target or package.location(home(), os.environ)
    try:
        changed = package.build(home(), path)
    except OSError as error:
        said = f"expected to write {path}, got: {error.strerror}. Next: name a file in a folder that you may write"
        typer.echo(said, err=True)
        raise typer.Exit(Status.REFUSED) from None
    typer.echo(f"{path}: {'written' if changed else 'unchanged'}")


VERBS = (init, validate, check, start, ddl_trigger, package, plan_migration)
