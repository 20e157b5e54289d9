"""What follows from each kind of change of a source table, what that costs, and what readers of the lake see of it. Pure.

What the lake pays is in proportion to what the source paid: a change that is metadata there is metadata here, and one for which
the server wrote rows again may cost a read of these. docs/schema-changes.md is printed from `RULES`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from penstock.shapes import changes
from penstock.shapes.mirror_column import MirrorColumn
from penstock.shapes.source_table import SourceColumn
from penstock.shapes.steps import (
    COLUMNS,
    COPY,
    LEAVES,
    NOTHING,
    VECTORS,
    Copy,
    Effect,
    Event,
    EventName,
    Evidence,
    Follow,
    Policy,
    Read,
    Step,
    Wait,
)
from penstock.values.defaults import Unsupported, default_literal
from penstock.values.lake_types import innermost
from penstock.values.pgtype import type_name
from penstock.values.type_change import followed, sent_as_real, widened


@dataclass(frozen=True, slots=True)
class Rule:
    """Decide what follows from a change, and say what its cases mean."""

    decide: Callable[[Any, Evidence, Policy], Step]
    effects: tuple[Effect, ...] = ()


def _table_unfit(change: changes.TableUnfit, evidence: Evidence, policy: Policy) -> Step:
    return Wait(change.why, change.slug) if policy.sends_old or not change.for_old_rows else Follow()


def _table_renamed(change: changes.TableRenamed, evidence: Evidence, policy: Policy) -> Step:
    return Copy(f"the table was renamed from {change.before} to {change.now}, and the lake's name shows its rows still")


def _column_added(change: changes.ColumnAdded, evidence: Evidence, policy: Policy) -> Step:
    new, event = change.now, Event("add-column", f"column {change.now.name} was added", _xid(change.now))
    if change.hidden:
        why = f"column {new.name} was generated or not published, and is in the stream now: old rows show stored values"
        return Read(why, column=new.attnum, event=event)
    if new.missing_text is not None and not new.as_text:
        # Iceberg has no form of a list or map, nor of a value beyond the lake's type
        found = default_literal(new.type, new.missing_text)
        if isinstance(found, Unsupported):
            why = f"column {new.name} was added with a constant default that the lake's column cannot have: {found.reason}"
            return Read(why, column=new.attnum, event=event)
    if new.missing_text is None and change.files - evidence.files_explained:
        # `vacuum full`, too, writes a default into old rows
        why = f"column {new.name} was added and the table rewritten: a default may have been written into every row"
        return Read(why, column=new.attnum, event=event, asks=True)
    return Follow(event)


def _column_altered(change: changes.ColumnAltered, evidence: Evidence, policy: Policy) -> Step:
    column = change.now
    if column.attnum in evidence.values_kept or not change.files - evidence.harmless:
        return Follow()
    why = f"column {column.name} was altered and the table rewritten: its old rows may hold other values"
    return Read(why, column=column.attnum, asks=True)


def _column_renamed(change: changes.ColumnRenamed, evidence: Evidence, policy: Policy) -> Step:
    text = f"column {change.column.name} was renamed to {change.now.name}"
    return Follow(Event("rename-column", text, _xid(change.now))) if policy.follows else Copy(text)


def _column_retyped(change: changes.ColumnRetyped, evidence: Evidence, policy: Policy) -> Step:
    before, now = change.column, change.now
    text = f"column {now.name} changed its type from {type_name(before.type)} to {type_name(now.type)}"
    event = Event("retype-column", text, _xid(now), retyped=now.attnum)
    same = followed(before.type, now.type) or (now.attnum in evidence.values_kept and _widened(before, now))
    return Follow(event) if policy.follows and same else Read(text, column=now.attnum, event=event)


def _widened(before: MirrorColumn, now: SourceColumn) -> bool:
    """Return whether a cast that keeps all values is metadata: a key of `real` is not, since rows are found by the texts of their keys."""
    rounded = sent_as_real(innermost(before.type).oid, now.type)
    return widened(before.type, now.type) and not (rounded and (before.key or now.key))


def _column_gone(change: changes.ColumnGone, evidence: Evidence, policy: Policy) -> Step:
    column = change.column
    if change.hidden:
        return Copy(f"column {column.name} is not in the stream any more: it is generated or not published")
    text = f"column {column.name} was dropped"
    if not policy.follows:
        return Copy(text)
    if column.key and policy.on_dropped_column == "drop":
        return Copy(f"{text}, and older changes find their rows by it")
    return Follow(Event("drop-column", text))


def _whole_rows_compared(change: changes.WholeRowsCompared, evidence: Evidence, policy: Policy) -> Step:
    kept = (each.name for each in change.missing if each.dropped or policy.on_dropped_column == "keep")
    name = next(kept, None)
    if name is None:
        return Follow()
    return Copy(f"column {name} was dropped, and without a key only whole rows tell which of the lake's are meant")


def _filter_changed(change: changes.FilterChanged, evidence: Evidence, policy: Policy) -> Step:
    return Copy("the publication's row filter changed")


def _labels_changed(change: changes.LabelsChanged, evidence: Evidence, policy: Policy) -> Step:
    return Read(f"a label of enum {change.name} was renamed or moved, perhaps back", enum=change.oid)


def _attributes_changed(change: changes.AttributesChanged, evidence: Evidence, policy: Policy) -> Step:
    why = f"composite type {change.name} got or lost an attribute, perhaps both"
    return Read(why, column=change.column.attnum)


def _leaf_gone(change: changes.LeafGone, evidence: Evidence, policy: Policy) -> Step:
    gone, chosen = change.partition, policy.on_dropped_partition
    lost = "detached or dropped" if gone.snapshot is None else "truncated by itself"
    what = f"partition {gone.name} was {lost} with its rows"
    if chosen is None:
        # what is not ready yet is copied again, whatever was chosen
        return Copy(f"{what}, and lake.on_dropped_partition does not say what follows" if policy.follows else what)
    rows = "the lake keeps its rows" if chosen == "keep" else "its rows go"
    name: EventName = "drop-partition" if gone.snapshot is None else "truncate-partition"
    event = Event(name, f"partition {gone.name} was {lost}, and {rows}")
    if chosen == "follow" and change.unclear:
        return Read("; ".join(f"{what}, and {why}" for why in change.unclear), leaf=gone.oid, event=event)
    return Follow(event)


def _leaf_attached(change: changes.LeafAttached, evidence: Evidence, policy: Policy) -> Step:
    leaf = change.leaf
    if leaf.oid not in evidence.rows_sent:
        why = "and nothing tells rows that it had then from rows that it took since"
        return Read(f"partition {leaf.name} was attached, {why}", leaf=leaf.oid, asks=True)
    if change.has_other_file:
        why = f"partition {leaf.name} was attached and rewritten or truncated: rows that it took may be gone"
        return Read(why, leaf=leaf.oid)
    return Follow()


def _leaf_changed(change: changes.LeafChanged, evidence: Evidence, policy: Policy) -> Step:
    return Read(f"partition {change.leaf.name} {change.how}", leaf=change.leaf.oid)


def _file_changed(change: changes.FileChanged, evidence: Evidence, policy: Policy) -> Step:
    leaf = change.leaf
    rewritten = bool(evidence.values_kept) and not change.new
    if not change.silent or rewritten or leaf.oid in evidence.harmless:
        return Follow()
    why = (
        f"{'partition ' if change.partition else ''}{leaf.name} has a new file, and nothing tells that it has the rows of before: "
        "it was truncated by itself, rewritten, or unlogged for a while"
    )
    return Read(why, leaf=leaf.oid, asks=True)


def _key_changed(change: changes.KeyChanged, evidence: Evidence, policy: Policy) -> Step:
    """Follow where each change of a row says itself which columns it is found by; of partitions each has its own."""
    before, now = change.key_before, change.key_now
    if policy.follows and before and before.keys() == now.keys() and "n" not in (change.before, change.now):
        how = {"d": "the primary key", "i": "an index", "f": "full"}[change.now]
        return Follow(Event("replica-identity", f"the replica identity is {how} now, with the same key"))
    late = change.late and change.before == change.now and bool(before)
    reason = (
        "the key is deferrable now, in a partition at least, and tells no rows apart"
        if late
        else "the replica identity changed"
    )
    if not (policy.follows and change.plain):
        return Copy(reason)
    why = ", because the primary key is deferrable" if change.late else ""
    text = f"the key is {_named(now, change.now)} now{why}, it was {_named(before, change.before)}"
    return Follow(Event("drop-key" if change.now == "n" else "change-key", text), frozenset(before), reason)


def _named(key: Mapping[int, str], identity: str) -> str:
    if key:
        return f"({', '.join(key.values())})"
    return "the whole row" if identity == "f" else "none, for inserts only"


def _xid(column: SourceColumn) -> int | None:
    """Return who wrote the column's row of the catalog last."""
    return int(column.version) if column.version.isdigit() else None


def _rule(decide: Callable[[Any, Evidence, Policy], Step], *effects: Effect) -> Rule:
    return Rule(decide, effects)


RULES: Mapping[type[changes.Change], Rule] = {
    changes.ColumnAdded: _rule(
        _column_added,
        Effect(
            "column added, without default or with a constant one",
            "followed at the next merge, also where no row has changed since",
            readers="the new column; rows from before show its constant default, or NULL",
            events=("add-column",),
        ),
        Effect(
            "column added with a volatile default, `serial`, identity, a domain's default, or a constant one that Iceberg has no form of (an "
            "array, `hstore`, `NaN`, `infinity`); generated or unpublished column that comes into the stream",
            "the key and these columns are read under a snapshot, and merged in ([columns](#column-fetch))",
            cost=COLUMNS,
        ),
    ),
    changes.ColumnRenamed: _rule(
        _column_renamed,
        Effect(
            "column renamed, also two that swap their names",
            "the same field under its new name",
            readers="the column under its new name; older cuts keep the old name",
            events=("rename-column",),
        ),
    ),
    changes.ColumnGone: _rule(
        _column_gone,
        Effect(
            "column dropped",
            "the lake keeps it",
            readers="the column still, marked as dropped, with NULL in rows written since",
            events=("drop-column",),
            where=("on_dropped_column", "keep"),
        ),
        Effect(
            "column dropped",
            "the lake drops it",
            readers="no such column any more: its values are left in older cuts only",
            events=("drop-column",),
            where=("on_dropped_column", "drop"),
            outcome="loses",
        ),
        Effect(
            "column dropped, another added under its name",
            "two fields: the old one is renamed or goes",
            readers="the new column; the old one, if it is kept, as `<name>__dropped_<number>`",
        ),
    ),
    changes.ColumnRetyped: _rule(
        _column_retyped,
        Effect(
            "`varchar(n)` longer or without a limit, `varchar` and `text` and `citext` to each other (not in arrays, which the server writes "
            "anew), a domain to its base, a finer timestamp or time",
            "followed",
            readers="the same values, in a column as wide as the new type needs",
            events=("retype-column",),
        ),
        Effect("`numeric(p,s)` of more digits before the point", "the decimal is widened", readers="the same values"),
        Effect(
            "`smallint` or `int` to a wider one, also in arrays; `real` to `double precision`, but for a key",
            "where [the DDL trigger](#the-ddl-trigger) tells that a client's plain `alter table` did it, the column is "
            "widened; else as the next line",
            readers="the same values",
        ),
    ),
    changes.ColumnAltered: _rule(
        _column_altered,
        Effect(
            "any other change of a column's type, or of its row in the catalog while the table's file was written anew",
            "the key and these columns are read, as above; of a table without a key, or in partitions, all of it",
            cost=COLUMNS,
        ),
    ),
    changes.LabelsChanged: _rule(
        _labels_changed,
        Effect(
            "enum label added; type, domain or attribute of a composite type renamed",
            "followed",
            readers="new labels",
        ),
        Effect(
            "enum label renamed",
            "as a column with a volatile default, of the rows that hold it; of all rows where an array or a composite has it",
            cost=replace(COLUMNS, text="a copy of the key and these columns, of these rows"),
        ),
    ),
    changes.AttributesChanged: _rule(
        _attributes_changed,
        Effect(
            "attribute of a composite type added or dropped",
            "as before, the columns that hold the type, of all rows",
            cost=COLUMNS,
        ),
    ),
    changes.KeyChanged: _rule(
        _key_changed,
        Effect(
            "replica identity full, default or by an index, with the same key",
            "followed",
            readers="the table as before; changes are matched by the same key",
            events=("replica-identity",),
        ),
        Effect(
            "primary key or replica identity of other columns, or `full` without a key, and back",
            "changes before it in the stream find their rows by the old key, later ones by the new one ([keys](#key-changes))",
            readers="the table as before; changes from here on are matched by the new key",
            events=("change-key",),
        ),
        Effect(
            "primary key or replica identity gone",
            "the same, and no change is matched any more",
            readers="inserts only: the server refuses the application's updates and deletes until there is a key",
            events=("drop-key",),
            outcome="pauses",
        ),
    ),
    changes.WholeRowsCompared: _rule(_whole_rows_compared),
    changes.LeafAttached: _rule(
        _leaf_attached,
        Effect(
            "partition created in its place, or attached empty",
            "followed; its rows come with the partitioned table",
            readers="its rows, as they come",
        ),
        Effect(
            "partition attached with rows, a branch of partitions too",
            "the rows of these partitions alone are read under a snapshot, and replace what the lake has of them "
            "([partitions](#partition-fetch))",
            cost=LEAVES,
        ),
    ),
    changes.LeafChanged: _rule(
        _leaf_changed,
        Effect(
            "partition detached and attached again, set unlogged, with another replica identity, or that took rows and was gone before the "
            "next look",
            "as before",
            cost=LEAVES,
        ),
    ),
    changes.LeafGone: _rule(
        _leaf_gone,
        Effect(
            "partition dropped, detached, or truncated by itself and still empty",
            "its rows go, where its bounds tell them from all others; else as one that was attached",
            cost=VECTORS,
            readers="the table without the rows of the partition, from a cut right after",
            events=("drop-partition", "truncate-partition"),
            where=("on_dropped_partition", "follow"),
        ),
        Effect(
            "partition dropped, detached, or truncated by itself and still empty",
            "they stay, and no copy of the table is made",
            readers="the table with the rows of the partition, which only the lake has from then on",
            events=("drop-partition", "truncate-partition"),
            where=("on_dropped_partition", "keep"),
        ),
        Effect("partition dropped, detached or truncated, where nobody has chosen", "it is copied again", cost=COPY),
    ),
    changes.FileChanged: _rule(
        _file_changed,
        Effect(
            "`vacuum full`, `cluster`, `analyze`, an index, a grant, a comment, `not null`, a default, a constraint",
            "nothing",
            cost=NOTHING,
        ),
        Effect(
            "partition with a new file of which neither rows nor stream tell that it has the rows of before",
            "as one that was attached with rows",
            cost=LEAVES,
        ),
    ),
    changes.TableRenamed: _rule(
        _table_renamed,
        Effect(
            "table renamed or moved to another schema, alone, in chains, or as blue and green change places",
            "the lake's tables take the new names in the next cut, with their changelogs",
            readers="the table under its new name from the cut on, and no table under the old one",
            events=("rename-table",),
            where=("on_renamed_table", "follow"),
        ),
        Effect(
            "table renamed or moved to another schema",
            "the lake's tables keep their names",
            readers="the table under the name that it has in the lake",
            events=("rename-table",),
            where=("on_renamed_table", "keep"),
        ),
    ),
    changes.FilterChanged: _rule(
        _filter_changed,
        Effect(
            "anything else that the stream does not carry",
            "that table pauses, with the reason, and is copied again",
            cost=COPY,
        ),
    ),
    changes.TableUnfit: _rule(_table_unfit),
}


def effect(event: EventName, policy: Policy) -> Effect:
    """Return what a change that is followed means under a policy."""
    found = (each for rule in RULES.values() for each in rule.effects)
    return next(each for each in found if each.holds(event, policy))


def markdown() -> str:
    """Return the table of changes of docs/schema-changes.md."""
    rows = (each for rule in RULES.values() for each in rule.effects)
    return "\n".join(
        ["| change at the source | what happens | cost | readers see |", "|---|---|---|---|", *map(str, rows)]
    )
