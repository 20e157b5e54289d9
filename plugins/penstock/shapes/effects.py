"""What changes of a source table mean, in the words of whoever makes them: the rows of the table of docs/schema-changes.md. Pure.

Which of these a change is, `penstock.shapes.rules` decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from penstock.shapes.steps import EventName, Policy

Outcome = Literal["free", "copies", "pauses", "loses"]
ORDER: tuple[Outcome, ...] = ("free", "copies", "pauses", "loses")
"""From what concerns nobody to what concerns most."""
METADATA = "metadata: no data file is written"
VECTORS = "deletion vectors of its rows: no data file is written"
COLUMNS = "a copy of the key and these columns"
LEAVES = "a copy of the rows of these partitions"
COPY = "a copy of the table"
UNTIL = "the table as it was, without later changes, until {}"
UNTIL_COLUMNS = UNTIL.format("it has these columns' values, in one cut")
UNTIL_LEAVES = UNTIL.format("it has the rows of these partitions, in one cut")
UNTIL_COPY = UNTIL.format("a new copy takes its place in one cut")
SAME = "the table as before"


@dataclass(frozen=True, slots=True)
class Effect:
    """Say of a change, in the words of whoever makes it, what happens, what that costs, and what readers see.

    It is of the event that follows by it, if any; `where` names the setting under which it holds, and its value. `outcome` is how
    far it concerns anybody.
    """

    change: str
    happens: str
    cost: str = METADATA
    readers: str = SAME
    events: tuple[EventName, ...] = ()
    where: tuple[str, str] | None = None
    outcome: Outcome = "free"

    def holds(self, event: EventName, policy: Policy) -> bool:
        """Return whether it is of an event under a policy."""
        return event in self.events and (self.where is None or getattr(policy, self.where[0]) == self.where[1])

    def __str__(self) -> str:
        """Return it as a row of a table in Markdown."""
        setting = f"`lake.{self.where[0]}: {self.where[1]}`: " if self.where else ""
        return f"| {self.change} | {setting}{self.happens} | {self.cost} | {self.readers} |"


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome that concerns most."""
    return max(outcomes, key=ORDER.index, default="free")


COLUMN_ADDED = (
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
        COLUMNS,
        UNTIL_COLUMNS,
    ),
)
COLUMN_RENAMED = (
    Effect(
        "column renamed, also two that swap their names",
        "the same field under its new name",
        readers="the column under its new name; older cuts keep the old name",
        events=("rename-column",),
    ),
)
COLUMN_GONE = (
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
)
COLUMN_RETYPED = (
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
)
COLUMN_ALTERED = (
    Effect(
        "any other change of a column's type, or of its row in the catalog while the table's file was written anew",
        "the key and these columns are read, as above; of a table without a key, or in partitions, all of it",
        COLUMNS,
        UNTIL_COLUMNS,
    ),
)
LABELS_CHANGED = (
    Effect("enum label added; type, domain or attribute of a composite type renamed", "followed", readers="new labels"),
    Effect(
        "enum label renamed",
        "as a column with a volatile default, of the rows that hold it; of all rows where an array or a composite has it",
        "a copy of the key and these columns, of these rows",
        UNTIL_COLUMNS,
    ),
)
ATTRIBUTES_CHANGED = (
    Effect(
        "attribute of a composite type added or dropped",
        "as before, the columns that hold the type, of all rows",
        COLUMNS,
        UNTIL_COLUMNS,
    ),
)
KEY_CHANGED = (
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
)
LEAF_ATTACHED = (
    Effect(
        "partition created in its place, or attached empty",
        "followed; its rows come with the partitioned table",
        readers="its rows, as they come",
    ),
    Effect(
        "partition attached with rows, a branch of partitions too",
        "the rows of these partitions alone are read under a snapshot, and replace what the lake has of them "
        "([partitions](#partition-fetch))",
        LEAVES,
        UNTIL_LEAVES,
    ),
)
LEAF_CHANGED = (
    Effect(
        "partition detached and attached again, set unlogged, with another replica identity, or that took rows and was gone before the "
        "next look",
        "as before",
        LEAVES,
        UNTIL_LEAVES,
    ),
)
LEAF_GONE = (
    Effect(
        "partition dropped, detached, or truncated by itself and still empty",
        "its rows go, where its bounds tell them from all others; else as one that was attached",
        VECTORS,
        "the table without the rows of the partition, from a cut right after",
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
    Effect("partition dropped, detached or truncated, where nobody has chosen", "it is copied again", COPY, UNTIL_COPY),
)
FILE_CHANGED = (
    Effect(
        "`vacuum full`, `cluster`, `analyze`, an index, a grant, a comment, `not null`, a default, a constraint",
        "nothing",
        "nothing",
    ),
    Effect(
        "partition with a new file of which neither rows nor stream tell that it has the rows of before",
        "as one that was attached with rows",
        LEAVES,
        UNTIL_LEAVES,
    ),
)
TABLE_RENAMED = (
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
)
FILTER_CHANGED = (
    Effect(
        "anything else that the stream does not carry",
        "that table pauses, with the reason, and is copied again",
        COPY,
        UNTIL_COPY,
    ),
)
