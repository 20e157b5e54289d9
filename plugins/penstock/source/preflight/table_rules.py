"""The preflight's rules for the tables that are or would be published. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from penstock.shapes import row_identity
from penstock.shapes.mirror_column import reserved
from penstock.shapes.source_table import SourceTable
from penstock.source import types
from penstock.source.patterns import chosen_by, in_pattern
from penstock.source.preflight.asked import Asked
from penstock.source.preflight.findings import Note, names, note, quoted
from penstock.source.publication import PublicationFacts
from penstock.source.refusals import Refusal, explained

_CUTS = "_penstock_cuts"  # the table next to every pipeline's own


def may_read(asked: Asked) -> Iterator[Note]:
    """Check that whoever reads tables may read every row of every heap that is to be copied."""
    heaps = {leaf.oid for table in asked.tables for leaf in table.leaves}
    read = [each for each in asked.reads if each.oid in heaps]
    who = asked.role.name if asked.reader is None else asked.reader.name
    lacking = {
        "schemas": sorted({quoted(each.schema) for each in read if not each.usage}),
        "unreadable": [quoted(each.schema, each.name) for each in read if not each.select],
        "narrowed": [quoted(each.schema, each.name) for each in read if each.narrowed],
    }
    for name, found in lacking.items():
        if found:
            yield note(name, lacking=found, who=who)
    if read and not any(lacking.values()):
        yield note("privileges", heaps=len(read))


def identities(asked: Asked) -> Iterator[Note]:
    """Check that every table can take updates and deletes once it is published."""
    facts = asked.publication
    if not _sent(asked):
        return
    published = {table.oid for table in asked.tables}
    for table in asked.wanted:
        if table.oid not in published and (found := unfit(table, facts, asked.refused)):
            slug, why, step = found
            yield note("not-joining", table=table.qualified, kind=slug, why=why, step=step)
    for table in asked.tables:
        if refused := asked.refused.get(table.oid):
            why, step = explained(refused)
            now = "fail" if facts else "would fail"
            yield note("updates-refused", table=table.qualified, now=now, why=why, step=step)
        elif strange := row_identity.misread(table):
            why, step = strange
            yield note("identity-strange", table=table.qualified, why=why, step=step)


def names_of_objects(asked: Asked) -> Iterator[Note]:
    """Name columns whose text is the name of another object, and refuse them where rows are told apart by them."""
    for table in asked.tables:
        columns = [column for column in table.columns if column.names_objects]
        if _sent(asked) and (unfound := row_identity.unfound(table)):
            why, step = unfound
            yield note("key-of-names", table=table.qualified, why=why, step=step)
            columns = row_identity.names_beside_key(table)
        if columns:
            yield note(
                "names-of-objects",
                table=table.qualified,
                columns=row_identity.named(columns),
                lost=row_identity.LOST,
                statement=row_identity.stored(table, columns),
            )


def arrays(asked: Asked) -> Iterator[Note]:
    """Name arrays that are declared with more dimensions than the lake's have, and choices of a type that choose nothing."""
    chosen = [types.as_chosen(asked.pipeline, table) for table in asked.tables]
    for table in chosen:
        pattern = f"{in_pattern(table.schema)}.{in_pattern(table.name)}"
        for column in table.columns:
            if column.dimensions > 1 and types.is_array(column.type) and not column.as_text:
                entry = {"include": [pattern], "columns": [column.name], "type": "string"}
                shown = json.dumps(entry, ensure_ascii=False)
                yield note("array-deep", table=table.qualified, column=column, entry=shown)
    for number, each in enumerate(asked.pipeline.tables.columns):
        tables = [table for table in chosen if chosen_by(each)(table.schema, table.name)]
        texts = {column.name for table in tables for column in table.columns if column.as_text}
        if nothing := [name for name in each.columns if name not in texts]:
            where = names(table.qualified for table in tables) or "any table"
            yield note("no-such-array", number=number, columns=nothing, where=where)


def contents(asked: Asked) -> Iterator[Note]:
    """Check the columns, and name rows and columns that will not be in the lake."""
    for table in asked.tables:
        subject, is_parted = table.qualified, table.kind == "p"
        if clash := _clash(table):
            yield note("reserved-column", table=subject, clash=clash)
        if table.hidden:
            yield note("hidden-columns", table=subject, hidden=tuple(table.hidden.values()))
        if table.late_key and table.identity == "f":
            yield note("late-key", table=subject, where=" in a partition at least" if is_parted else "")
        if table.filter is not None:
            yield note("row-filter", table=subject)
        if silent := [leaf.qualified for leaf in table.leaves if leaf.kind != "r" or leaf.persistence != "p"]:
            is_empty = len(silent) == len(table.leaves)
            alone = "; it has no other partition, so the table is empty in the lake" if is_empty else ""
            yield note("silent-partitions", table=subject, silent=silent, alone=alone)


def targets(asked: Asked) -> Iterator[Note]:
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
            yield note("target-clash", target=".".join(target), claimed=claimed)


def partitions(asked: Asked) -> Iterator[Note]:
    """Ask what becomes of the lake's rows when a partition is dropped, since no default is right for everyone."""
    found = [table.qualified for table in asked.tables if table.kind == "p"]
    if found and asked.pipeline.lake.on_dropped_partition is None:
        yield note("partitions", found=found)


def unfit(
    table: SourceTable, publication: PublicationFacts | None, refused: Mapping[int, Sequence[Refusal]]
) -> tuple[str, str, str] | None:
    """Say why a table must not join a publication, as slug, reason and next step, or return None."""
    if found := refused.get(table.oid):
        return ("no-usable-identity", *explained(found))
    sends_old = publication is None or publication.sends_old
    if sends_old and (misfit := row_identity.problem(table)):
        return ("no-usable-identity", *misfit)
    if clash := _clash(table):
        return (
            "target-clash",
            f"the lake's tables keep the name of its column {clash} for themselves",
            "rename the column",
        )
    return None


def _sent(asked: Asked) -> set[str]:
    """Return which of updates and deletes the publication sends, or would."""
    facts = asked.publication
    return {"update", "delete"} & set(asked.pipeline.source.publish if facts is None else facts.sent)


def _clash(table: SourceTable) -> str | None:
    return reserved(column.name for column in table.columns)
