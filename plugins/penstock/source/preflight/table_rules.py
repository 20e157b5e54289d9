"""The preflight's rules for the tables that are or would be published. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from penstock.shapes import object_names
from penstock.shapes.mirror_column import reserved
from penstock.shapes.replica_identity import problem, remedy
from penstock.shapes.source_table import SourceTable
from penstock.source import types
from penstock.source.patterns import chosen_by, in_pattern
from penstock.source.preflight.report import Asked, Finding, error, names, ok, quoted, warn
from penstock.source.publication import PublicationFacts
from penstock.source.refusals import Refusal, explained

_CUTS = "_penstock_cuts"  # the table next to every pipeline's own


def may_read(asked: Asked) -> Iterator[Finding]:
    """Check that whoever reads tables may read every row of every heap that is to be copied."""
    heaps = {leaf.oid for table in asked.tables for leaf in table.leaves}
    read = [each for each in asked.reads if each.oid in heaps]
    role = asked.role.name if asked.reader is None else asked.reader.name
    if schemas := sorted({quoted(each.schema) for each in read if not each.usage}):
        step = _grant("usage on schema", schemas, role)
        yield error("privileges", f"expected USAGE on the schemas {names(schemas)}", step, "source-auth")
    if unreadable := [quoted(each.schema, each.name) for each in read if not each.select]:
        step = _grant("select on", unreadable, role)
        yield error("privileges", f"expected SELECT on {names(unreadable)}", step, "source-auth")
    if narrowed := [quoted(each.schema, each.name) for each in read if each.narrowed]:
        yield error(
            "row-level security",
            f"expected to read every row, but policies would hide rows of {names(narrowed)}: "
            "the stream shows them all, so the copy must too",
            f"run: alter role {quoted(role)} bypassrls; or exclude the tables",
            "source-auth",
        )
    if read and not (schemas or unreadable or narrowed):
        yield ok("privileges", f"may read all {len(read)} heaps to copy")


def identities(asked: Asked) -> Iterator[Finding]:
    """Check that every table can take updates and deletes once it is published."""
    facts = asked.publication
    sent = asked.pipeline.source.publish if facts is None else facts.sent
    if not {"update", "delete"} & set(sent):
        return
    published = {table.oid for table in asked.tables}
    for table in asked.wanted:
        if table.oid not in published and (found := unfit(table, facts, asked.refused)):
            slug, why, step = found
            why = f"it matches tables.include and does not join the publication, because {why}"
            yield warn(table.qualified, why, f"{step}; or exclude it", slug)
    for table in asked.tables:
        if refused := asked.refused.get(table.oid):
            reason, step = explained(refused)
            now = "fail" if asked.publication else "would fail"
            why = f"expected it to take the application's updates and deletes, but they {now} once it is published: {reason}"
            yield error(table.qualified, why, f"{step}; or exclude it", "no-usable-identity")
        elif strange := problem(table):
            why = f"expected a replica identity that can be read, but {strange}: old rows would be misread"
            yield error(table.qualified, why, f"{remedy(table)}; or exclude it", "no-usable-identity")


def names_of_objects(asked: Asked) -> Iterator[Finding]:
    """Name columns whose text is the name of another object, and refuse them where rows are told apart by them."""
    facts = asked.publication
    sent = {"update", "delete"} & set(asked.pipeline.source.publish if facts is None else facts.sent)
    for table in asked.tables:
        columns = [column for column in table.columns if column.names_objects]
        if sent and (reason := object_names.problem(table)):
            expected = "expected the columns that tell rows apart to say the same of a row at any time"
            step = f"{object_names.remedy(table)}; or exclude it"
            yield error(table.qualified, f"{expected}, but {reason}", step, "no-usable-identity")
            columns = object_names.others(table)
        if columns:
            yield warn(
                table.qualified,
                f"it has {object_names.named(columns)}: {object_names.LOST}",
                f"nothing to do if that is enough; else run: {object_names.stored(table, columns)}",
                object_names.SLUG,
            )


def arrays(asked: Asked) -> Iterator[Finding]:
    """Name arrays that are declared with more dimensions than the lake's have, and choices of a type that choose nothing."""
    chosen = [types.as_chosen(asked.pipeline, table) for table in asked.tables]
    for table in chosen:
        for column in table.columns:
            if column.dimensions > 1 and types.is_array(column.type) and not column.as_text:
                pattern = f"{in_pattern(table.schema)}.{in_pattern(table.name)}"
                entry = json.dumps(
                    {"include": [pattern], "columns": [column.name], "type": "string"}, ensure_ascii=False
                )
                yield warn(
                    table.qualified,
                    f"column {column.name} is an array of {column.dimensions} dimensions, and an array of the lake has one: a value of more "
                    "than one will be NULL there, and a text in _misfits",
                    f"nothing to do if that is enough; else choose text for it in the pipeline file by an entry of tables.columns: {entry}",
                )
    for number, each in enumerate(asked.pipeline.tables.columns):
        tables = [table for table in chosen if chosen_by(each)(table.schema, table.name)]
        texts = {column.name for table in tables for column in table.columns if column.as_text}
        if nothing := [name for name in each.columns if name not in texts]:
            yield error(
                f"tables.columns[{number}]",
                f"expected columns of arrays, which alone can be had as another type, got no such column {names(nothing)} in "
                f"{names(table.qualified for table in tables) or 'any table'}",
                "name columns of arrays, or take the entry away",
                "config-invalid",
            )


def contents(asked: Asked) -> Iterator[Finding]:
    """Check the columns, and name rows and columns that will not be in the lake."""
    for table in asked.tables:
        yield from _columns(table)
        yield from _rows(table)


def targets(asked: Asked) -> Iterator[Finding]:
    """Check that no two tables that stay share a target, and none takes a name of our own."""
    by_target: dict[tuple[str, ...], list[str]] = defaultdict(list)
    by_target[asked.pipeline.namespace, _CUTS].append("the pipeline's own table of cuts")
    logged = chosen_by(asked.pipeline.changelog.tables)
    for table in asked.staying():
        target = asked.pipeline.target(table.schema, table.name)
        if logged(table.schema, table.name) and target not in by_target:  # two of one target are reported once
            by_target[asked.pipeline.changelog_target(target)].append(f"the changelog of {table.qualified}")
        by_target[target].append(table.qualified)
    for target, claimed in by_target.items():
        if len(claimed) > 1:
            yield error(
                ".".join(target),
                f"expected one source table per target, got {names(claimed)}",
                "change lake.target so that their names differ, or exclude one (from changelog.tables, if it is a changelog)",
                "target-clash",
            )


def unfit(
    table: SourceTable, publication: PublicationFacts | None, refused: Mapping[int, Sequence[Refusal]]
) -> tuple[str, str, str] | None:
    """Say why a table must not join a publication, as slug, reason and next step, or return None."""
    if found := refused.get(table.oid):
        return ("no-usable-identity", *explained(found))
    silent = publication is not None and not (publication.update or publication.delete)
    if not silent and (reason := problem(table)):
        return "no-usable-identity", reason, remedy(table)
    if not silent and (reason := object_names.problem(table)):
        return "no-usable-identity", reason, object_names.remedy(table)
    if clash := _clash(table):
        return (
            "target-clash",
            f"the lake's tables keep the name of its column {clash} for themselves",
            "rename the column",
        )
    return None


def partitions(asked: Asked) -> Iterator[Finding]:
    """Ask what becomes of the lake's rows when a partition is dropped, since no default is right for everyone."""
    found = [table.qualified for table in asked.tables if table.kind == "p"]
    if found and asked.pipeline.lake.on_dropped_partition is None:
        yield warn(
            "partitions",
            f"nobody has chosen what follows in the lake when a partition of {names(found)} is dropped or detached: the table is "
            "copied again",
            "set lake.on_dropped_partition to follow, and the rows of such a partition go from the lake, or to keep, and they stay "
            "there: then the lake is the archive, and the only place that has them",
        )


def _clash(table: SourceTable) -> str | None:
    return reserved(column.name for column in table.columns)


def _columns(table: SourceTable) -> Iterator[Finding]:
    if clash := _clash(table):
        yield error(
            table.qualified,
            f"expected no column {clash}: the lake's tables keep that name for a column of their own",
            "rename the column, or leave it out by a column list of the publication",
            "target-clash",
        )
    if table.hidden:
        yield warn(
            table.qualified,
            f"these columns are generated or not published, and will not be in the lake: {names(table.hidden)}",
            "nothing to do if they are not wanted",
        )


def _rows(table: SourceTable) -> Iterator[Finding]:
    if table.late_key and table.identity == "f":
        where = " in a partition at least" if table.kind == "p" else ""
        yield warn(
            table.qualified,
            f"its primary key is deferrable{where}, so its rows are told by all of their values: merges read all columns of its "
            "files, and samples of verify leave it out",
            "nothing to do if it is small; else give it a key that is not deferrable, or an identity index",
        )
    if table.filter_digest is not None:
        yield warn(
            table.qualified,
            "only rows that pass the publication's row filter will be in the lake",
            "nothing to do if that is meant",
        )
    silent = [f"{leaf.schema}.{leaf.name}" for leaf in table.leaves if leaf.kind != "r" or leaf.persistence != "p"]
    if silent:
        alone = (
            "; it has no other partition, so the table is empty in the lake" if len(silent) == len(table.leaves) else ""
        )
        yield warn(
            table.qualified,
            f"rows of these partitions are not in the WAL and will not be in the lake: {names(silent)}{alone}",
            "nothing to do if they are not wanted; else make them ordinary logged tables",
        )


def _grant(what: str, names_: Iterable[str], role: str) -> str:
    return f"run: grant {what} {names(names_)} to {quoted(role)}"
