"""The preflight's rules for the patterns and the publication. Pure."""

from collections import defaultdict
from collections.abc import Iterator

from penstock.config.model import CHANGES
from penstock.source.preflight.asked import Asked
from penstock.source.preflight.findings import Note, names, note
from penstock.source.preflight.table_rules import unfit
from penstock.source.publication import add_statement, create_statement, no_match
from penstock.units import several


def patterns(asked: Asked) -> Iterator[Note]:
    """Check that every pattern had an effect, and name what was left out."""
    choice = asked.choice
    if choice.unmatched_include:
        yield note("unmatched", problem=no_match(choice))
    elif not choice.chosen:
        yield note("nothing-chosen")
    if choice.unmatched_exclude:
        yield note("exclude-idle")
    if choice.inseparable:
        yield note("inseparable", parts=[each.qualified for each in choice.inseparable])
    by_reason: dict[str, list[str]] = defaultdict(list)
    for each, reason in choice.left_out:
        by_reason[reason].append(each.qualified)
    for reason, left_out in by_reason.items():
        yield note("left-out", reason=reason, left_out=left_out)


def publication(asked: Asked) -> Iterator[Note]:
    """Check that the publication is the pipeline's, or can be made in time."""
    pipeline = asked.pipeline
    if asked.publication is not None:
        if not (pipeline.source.adopt or asked.publication.made_for(pipeline.name)):
            yield note("publication-foreign")
    elif asked.server.in_recovery:
        yield note("publication-on-standby", statement=_making(asked))
    elif asked.own is not None:
        yield note("publication-late")
    elif not _rights_lacking(asked):
        yield note("publication-absent", tables_wanted=several(len(asked.wanted), "table"))


def membership(asked: Asked) -> Iterator[Note]:
    """Check that the publication has the tables that the patterns choose, or that capture will see to it."""
    if asked.publication is None or not _shows_roots(asked):
        return
    there, meant = {table.oid for table in asked.tables}, {table.oid for table in asked.wanted}
    missing = [
        table for table in asked.wanted if table.oid not in there and not unfit(table, asked.publication, asked.refused)
    ]
    lacking = [table.qualified for table in missing]
    extra = [table.qualified for table in asked.tables if table.oid not in meant]
    owned = {each.oid for each in asked.privileges if each.owned}
    # where the publication is ours, and so are the tables, capture lets them join
    if asked.follows and all(table.oid in owned for table in missing):
        if lacking or extra:
            yield note("members-follow", late=lacking + extra)
            return
    elif missing:
        yield note("members-missing", missing=lacking, statement=add_statement(asked.pipeline.publication, missing))
    if extra:
        yield note("members-extra", extra=extra)
    if not missing and not extra:
        yield note("members", members=several(len(there), "table"))


def options(asked: Asked) -> Iterator[Note]:
    """Check how the publication publishes."""
    facts, meant = asked.publication, asked.pipeline.source.publish
    if facts is None:
        return
    silent = [kind for kind in meant if kind not in facts.sent]
    more = [kind for kind in CHANGES if kind in facts.sent and kind not in meant]
    if silent:
        yield note("kinds-missing", kinds=silent)
    if more:
        yield note("kinds-more", kinds=more)
    if not silent and not more and len(meant) < len(CHANGES):
        yield note("kinds-few")
    if facts.all_tables:
        yield note("all-tables")
    if not _shows_roots(asked):
        yield note("via-leaves", roots=[table.qualified for table in asked.wanted if table.kind == "p"])


def origins(asked: Asked) -> Iterator[Note]:
    """Warn of rows that another server writes: copies take them, and their later changes are left out."""
    source = asked.pipeline.source
    if source.origin != "none" and not source.skip_origins:
        return
    key = "source.origin" if source.origin == "none" else "source.skip_origins"
    filled = {leaf.oid: table for table in asked.tables for leaf in table.leaves}
    filled |= {table.oid: table for table in asked.tables}
    writers = [
        f"{writer} writes {'tables that it does not name' if relation is None else filled[relation].qualified}"
        for writer, relation in asked.foreign
        if relation is None or relation in filled
    ]
    yield note("origins-lost" if writers else "origins", key=key, writers=dict.fromkeys(writers))


def age(asked: Asked) -> Iterator[Note]:
    """Check that the publication was there before any WAL that the slot still has to read."""
    facts, slot = asked.publication, asked.own
    if facts is None or slot is None or slot.catalog_xmin_age is None or facts.age > slot.catalog_xmin_age:
        return
    # of a slot of ours bootstrap saw to that; the publication was altered
    yield note("publication-young", level="warn" if asked.own_slot else "error")


def may_publish(asked: Asked) -> Iterator[Note]:
    """Check that our role may make the publication that does not exist yet."""
    if asked.publication is None and (missing := _rights_lacking(asked)):
        yield note("publication-rights", lacking=" and ".join(missing), statement=_making(asked))


def _rights_lacking(asked: Asked) -> list[str]:
    """Name the rights that our role lacks to make the publication of the chosen tables."""
    if asked.choice.unmatched_include and not asked.wanted:
        return []
    owned = {each.oid for each in asked.privileges if each.owned}
    foreign = [table.qualified for table in asked.wanted if table.oid not in owned]
    return [
        *([] if asked.role.create_in_database else ["CREATE on the database"]),
        *([f"ownership of {names(foreign)}"] if foreign else []),
    ]


def _making(asked: Asked) -> str:
    """Return the statement that makes the publication, and what is to be set besides so that the pipeline takes it."""
    source = asked.pipeline.source
    statement = create_statement(asked.pipeline.publication, asked.wanted, source.publish)
    return statement if source.adopt else f"{statement}; and set source.adopt: true"


def _shows_roots(asked: Asked) -> bool:
    via_root = asked.publication is None or "via_root" in asked.publication.sent
    return via_root or all(table.kind == "r" for table in asked.wanted)
