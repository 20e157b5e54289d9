"""Write a pipeline file from what a source has: its tables, what check says of them, and what to do next."""

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import typer

from penstock.cli import printing
from penstock.cli.options import Status, status_of
from penstock.config.connections import Connection
from penstock.config.files import SUFFIX, read_folder
from penstock.config.json_schema import SHIPPED
from penstock.config.model import Landing, Pipeline
from penstock.config.paths import environment, folder, home
from penstock.config.validators import NAME
from penstock.errors import ConfigError, PenstockError
from penstock.flow.check import Finding, failures, notified, seconds_between
from penstock.shapes.source_table import SourceTable
from penstock.source import catalog, preflight, session
from penstock.source.catalog_snapshot import read_catalog
from penstock.source.patterns import in_pattern
from penstock.source.preflight.server_rules import capture_statements, later_statement, reader_statements
from penstock.units import sentence, several, size

_MOST_TABLES = 100


def init(name: str, connection: str, include: Sequence[str], *, reader: str | None, adopt: bool, json: bool) -> None:
    """Write the file, print what was found and the next step, and end the process with a status."""
    try:
        path = _free_path(name)
        source = Connection.from_airflow_environment(connection, os.environ)
        reads = Connection.from_airflow_environment(reader, os.environ) if reader else None
        pipeline, tables, findings = _asked(name, source, reads, include, adopt=adopt)
        _write(path, "\n".join(_lines(path, pipeline, tables, findings)) + "\n")
    except PenstockError as error:
        printing.say(sentence(str(error)))
        printing.say(f"Next: penstock runbook {error.slug}")
        raise typer.Exit(status_of(error)) from None
    failed = failures(findings)
    if json:
        names = [table.qualified for table in tables]
        printing.show_json({"file": str(path), "tables": names, "findings": findings})
    else:
        printing.show_findings(f"{name}: {source.host}:{source.port}/{source.database}", findings)
        printing.show(f"{path}: written, {several(len(tables), 'table')}")
        for line in () if reader else _roles(source.database, tables):
            printing.show(line)
        for line in _next_steps(name, len(failed)):
            printing.show(line)
    raise typer.Exit(Status.FOUND if failed else Status.DONE)


def _free_path(name: str) -> Path:
    """Return where the file goes; raises ConfigError where the name is no name or is taken."""
    if not NAME.matches(name):
        raise ConfigError("config-invalid", f"expected {NAME.looks}, got {name!r}")
    path = folder() / f"{name}{SUFFIX}"
    taken = path if path.exists() else read_folder(folder(), environment()).files.get(name)
    if taken is not None:
        raise ConfigError(
            "config-invalid",
            f"expected a name that is free, but {taken} is the pipeline {name}; edit that file, or choose another name",
        )
    return path


def _asked(
    name: str, source: Connection, reads: Connection | None, include: Sequence[str], *, adopt: bool
) -> tuple[Pipeline, Sequence[SourceTable], list[Finding]]:
    """Ask the source for its tables, and for what forbids to read them; raises SourceError, ConfigError."""
    what = f"{name}:init"
    with (
        session.connect(source, what=what) as conn,
        session.connect(reads, what=what) if reads else nullcontext() as reader,
    ):
        schemas = sorted({each.schema for each in catalog.relations(conn) if each.kind in "rp"})
        patterns = list(include) or [f"{in_pattern(schema)}.*" for schema in schemas]
        pipeline = _pipeline(name, source.id, reads.id if reads else None, patterns, adopt=adopt)
        tables = read_catalog(conn, pipeline.publication, patterns=pipeline.tables, sizes=True).chosen
        if not tables and "*.*" not in include:
            wanted = f"that {', '.join(patterns)} chooses" if patterns else "in a schema of its users"
            raise ConfigError(
                "no-matching-tables",
                f"expected {source.database} to have tables {wanted}, got none; look whether the connection {source.id} "
                "leads to the right database, and whether its role may use the schemas",
            )
        seconds = seconds_between(pipeline.capture.schedule)
        findings = preflight.check(conn, pipeline, reader=reader, schedule_seconds=seconds)
    return pipeline, tables, [*findings, notified(pipeline.health)]


def _pipeline(name: str, connection: str, reader: str | None, patterns: Sequence[str], *, adopt: bool) -> Pipeline:
    uri = Landing.model_fields["uri"].default.replace("${PENSTOCK_HOME}", str(home()))
    tables = {"include": list(patterns) or ["*.*"]}
    given = {
        "name": name,
        "source": {"connection": connection, "reader_connection": reader, "adopt": adopt},
        "tables": tables,
    }
    try:
        return Pipeline.model_validate({**given, "landing": {"uri": uri}})
    except ValueError as error:
        raise ConfigError("config-invalid", f"expected patterns schema.table, got {', '.join(patterns)}") from error


def _lines(path: Path, pipeline: Pipeline, tables: Sequence[SourceTable], findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the lines of the file."""
    schema = os.path.relpath(home() / SHIPPED, path.parent)
    yield f"# yaml-language-server: $schema={schema}"
    yield f"# Made by `penstock init` on {datetime.now(UTC):%F}. Every other key has a default: docs/configuration.md"
    yield "version: 1"
    yield f"name: {pipeline.name}"
    yield ""
    yield "source:"
    yield f"  connection: {pipeline.source.connection}"
    if pipeline.source.reader_connection:
        yield f"  reader_connection: {pipeline.source.reader_connection}"
    if pipeline.source.adopt:
        yield "  adopt: true"
    yield ""
    yield "tables:"
    yield "  include:"
    yield from (f"    - {_yaml(pattern)}" for pattern in pipeline.tables.include)
    yield f"  # {several(len(tables), 'table')}, {size(sum(table.bytes for table in tables))} on that day; take some away with `exclude`:"
    yield from (f"  #   {_one_line(table.qualified)}, {size(table.bytes)}" for table in tables[:_MOST_TABLES])
    if len(tables) > _MOST_TABLES:
        yield f"  #   and {len(tables) - _MOST_TABLES} more"
    said = [finding for finding in findings if finding.level != "ok"]
    if said:
        yield ""
        yield f"# What `penstock check {pipeline.name}` said on that day:"
        for finding in said:
            yield f"#   {finding.level}: {_one_line(f'{finding.subject}: {finding.message}')}"
            if finding.next_step:
                yield f"#     next: {_one_line(finding.next_step)}"


def _write(path: Path, text: str) -> None:
    """Write a file that must not be there; raises ConfigError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError("config-invalid", f"expected no file at {path}, got one; nothing was written") from None
    except OSError as error:
        raise ConfigError(
            "config-invalid", f"expected to write {path}, got: {error.strerror}; set PENSTOCK_PIPELINES to a folder"
        ) from None


def _roles(database: str, tables: Sequence[SourceTable]) -> Iterator[str]:
    """Yield the statements that make the two roles, for whoever may make roles."""
    schemas = {table.schema for table in tables} | {leaf.schema for table in tables for leaf in table.leaves}
    yield "Two roles read a source: one decodes, and one that may do nothing else reads tables (docs/postgresql.md). A superuser"
    yield f"makes those that are missing, in database {database}:"
    yield from (f"  {line}" for line in (*capture_statements(database), *reader_statements(database, schemas)))
    yield "Set their passwords, and name the connection of the second one as source.reader_connection. For tables to come, their owner runs:"
    yield f"  {later_statement(schemas)}"


def _next_steps(name: str, failed: int) -> Iterator[str]:
    if failed:
        forbid = "1 finding forbids" if failed == 1 else f"{failed} findings forbid"
        yield f"Next: {forbid} a bootstrap. Do what stands after `next`, then: penstock check {name}"
        return
    yield "Next: read the file, then start with Airflow or without."
    yield f"  With Airflow:    penstock start {name}"
    yield f"  Without Airflow: penstock bootstrap {name}"


def _yaml(text: str) -> str:
    """Write a text as YAML in quotes of its own, whatever is in it."""
    doubled = text.replace("'", "''").replace("${", "$${")
    return f"'{doubled}'"


def _one_line(text: str) -> str:
    return " ".join(text.split())
