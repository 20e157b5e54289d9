"""What may follow from a change of a source table, by which evidence and settings, and what that costs and shows. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

EventName = Literal[
    "add-column",
    "rename-column",
    "drop-column",
    "retype-column",
    "replica-identity",
    "change-key",
    "drop-key",
    "rename-table",
    "drop-partition",
    "truncate-partition",
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Hold what rows, the stream and the event trigger have shown beyond the catalog; leaves are given by oid.

    `files_explained`: their new file is the work of a TRUNCATE in the stream. `rows_sent`: their rows show that a new file, or an
    arrival, hides nothing. `empty_in`: they have a new file and no row, with the snapshots that show it. `values_kept` are columns of
    which it was logged that no command has changed a value, set the table unlogged or emptied a partition.
    """

    files_explained: frozenset[int] = frozenset()
    rows_sent: frozenset[int] = frozenset()
    empty_in: Mapping[int, str] = field(default_factory=dict)
    values_kept: Collection[int] = ()

    @property
    def harmless(self) -> frozenset[int]:
        """Return the leaves whose new file hides nothing of the rows that were sent."""
        return self.files_explained | self.rows_sent


@dataclass(frozen=True, slots=True)
class Policy:
    """Say what is followed: with `follows`, all that can be; else added columns alone, as for what is copied again anyway.

    `sends_old`: updates or deletes are sent, which have to find their rows. The others are keys of `lake` in the pipeline file.
    """

    follows: bool = True
    sends_old: bool = True
    on_dropped_column: Literal["keep", "drop"] = "keep"
    on_dropped_partition: Literal["follow", "keep"] | None = None
    on_renamed_table: Literal["follow", "keep"] = "follow"


ADDED_ONLY = Policy(follows=False)


@dataclass(frozen=True, slots=True)
class Event:
    """Name a change that the lake follows, in words, and the 32-bit id of its transaction where the catalog has it.

    `retyped` is the column, by attnum, that has another type by it.
    """

    name: EventName
    text: str
    xid: int | None = None
    retyped: int | None = None


@dataclass(frozen=True, slots=True)
class Follow:
    """Follow by metadata.

    `finds_by` are the columns by which changes of before find their rows, where others do from now on. It stands against a read of
    these, and against any read where there are none: then the table is copied, for this `reason` too.
    """

    event: Event | None = None
    finds_by: frozenset[int] | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Read the values of a column, or those that hold labels of an enum, or the rows of a leaf.

    `asks`: only without an answer of rows and stream, which are asked whether a new file or an arrival hides anything.
    """

    reason: str
    column: int | None = None
    enum: int | None = None
    leaf: int | None = None
    event: Event | None = None
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy the table."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for a person."""

    reason: str
    slug: str


Step = Follow | Read | Copy | Wait

Outcome = Literal["free", "copies", "pauses", "loses"]
ORDER: tuple[Outcome, ...] = ("free", "copies", "pauses", "loses")
"""From what concerns nobody to what concerns most."""
UNTIL = "the table as it was, without later changes, until {}"


@dataclass(frozen=True, slots=True)
class Cost:
    """Say what the lake pays for a change, and what readers of it see."""

    text: str
    readers: str = "the table as before"


NOTHING = Cost("nothing")
METADATA = Cost("metadata: no data file is written")
VECTORS = Cost("deletion vectors of its rows: no data file is written")
COLUMNS = Cost("a copy of the key and these columns", UNTIL.format("it has these columns' values, in one cut"))
LEAVES = Cost("a copy of the rows of these partitions", UNTIL.format("it has the rows of these partitions, in one cut"))
COPY = Cost("a copy of the table", UNTIL.format("a new copy takes its place in one cut"))


@dataclass(frozen=True, slots=True)
class Effect:
    """Say of a change, in the words of whoever makes it, what happens, what that costs, and what readers see.

    It is of the event that follows by it, if any; `where` names the setting under which it holds, and its value. `outcome` is how
    far it concerns anybody.
    """

    change: str
    happens: str
    cost: Cost = METADATA
    readers: str | None = None
    events: tuple[EventName, ...] = ()
    where: tuple[str, str] | None = None
    outcome: Outcome = "free"

    def holds(self, event: EventName, policy: Policy) -> bool:
        """Return whether it is of an event under a policy."""
        return event in self.events and (self.where is None or getattr(policy, self.where[0]) == self.where[1])

    def __str__(self) -> str:
        """Return it as a row of a table in Markdown."""
        setting = f"`lake.{self.where[0]}: {self.where[1]}`: " if self.where else ""
        return f"| {self.change} | {setting}{self.happens} | {self.cost.text} | {self.readers or self.cost.readers} |"


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome that concerns most."""
    return max(outcomes, key=ORDER.index, default="free")
