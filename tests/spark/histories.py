"""A small language for histories of one table, and an independent judge of what they must lead to.

    tx(I(k=1, a="x"), U(k=1, a=UNCHANGED), U(old=dict(k=1), k=2, a="y"), D(k=2), T())

The judge applies the events one after the other to a dictionary, or to a bag for a table without a key. It knows
nothing of batches, segments or links: that is what makes it a judge.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

UNCHANGED = object()
"""The value of a column that PostgreSQL left out because it was TOASTed and did not change."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Event:
    op: str
    new: Row | None = None
    old: Row | None = None
    full: bool = False  # the old image is the whole row (REPLICA IDENTITY FULL)

    @property
    def written(self) -> Row:
        """The new row of an insert or an update."""
        assert self.new is not None
        return self.new

    @property
    def gone(self) -> Row:
        """The old row of a delete, or of an update that sends one."""
        assert self.old is not None
        return self.old


@dataclass(frozen=True)
class Transaction:
    events: tuple[Event, ...]
    xid: int | None = None


def I(**new: Any) -> Event:  # noqa: E743
    return Event("I", new=new)


def U(old: Row | None = None, *, full: bool = False, **new: Any) -> Event:
    return Event("U", new=new, old=old, full=full)


def D(full: bool = False, **old: Any) -> Event:
    return Event("D", old=old, full=full)


def T() -> Event:
    return Event("T")


def tx(*events: Event, xid: int | None = None) -> Transaction:
    return Transaction(events, xid)


def of_history(transaction: Transaction, number: int) -> Transaction:
    """Return the same transaction in a table that holds many histories, told apart by the column `h`."""

    def numbered(row: Row | None) -> Row | None:
        return None if row is None else {"h": number, **row}

    events = (replace(event, new=numbered(event.new), old=numbered(event.old)) for event in transaction.events)
    return replace(transaction, events=tuple(events))


class Diverged(Exception):
    """A change leaves out a value of a row that is not there."""


@dataclass
class KeyedJudge:
    """What a table with a key must hold."""

    keys: Sequence[str]
    rows: dict[tuple[Any, ...], Row] = field(default_factory=dict)
    conflicts: Counter[str] = field(default_factory=Counter)

    def apply(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.op == "T":
                self.rows.clear()
            elif event.op == "D":
                gone = self.rows.pop(self._key(event.gone), None)
                self.conflicts["delete_missing"] += gone is None
            else:
                self._write(event)

    def _write(self, event: Event) -> None:
        keys_from_old = {name: event.old[name] for name in self.keys} if event.old else {}
        new = {
            name: keys_from_old.get(name) if value is UNCHANGED and name in keys_from_old else value
            for name, value in event.written.items()
        }
        before = self.rows.pop(self._key(event.old or new), None) if event.op == "U" else None
        self.conflicts["update_missing"] += event.op == "U" and before is None
        self.conflicts["insert_existing"] += event.op == "I" and self._key(new) in self.rows
        for name, value in new.items():
            if value is UNCHANGED:
                if event.full:
                    new[name] = event.gone[name]
                elif before is None:
                    raise Diverged(name)
                else:
                    new[name] = before[name]
        self.rows[self._key(new)] = new

    def _key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.keys)

    def bag(self) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row.values()) for row in self.rows.values())


@dataclass
class BagJudge:
    """What a table without a key must hold: equal rows count."""

    rows: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)

    def apply(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.op == "T":
                self.rows.clear()
            if event.op in "UD":
                there = self.rows[tuple(event.gone.values())] > 0
                self.rows[tuple(event.gone.values())] -= there
                self.conflicts["delete_missing"] += not there
            if event.op in "IU":
                new = {name: event.gone[name] if value is UNCHANGED else value for name, value in event.written.items()}
                self.rows[tuple(new.values())] += 1

    def bag(self) -> Counter[tuple[Any, ...]]:
        return +self.rows
