"""Random valid histories, many in one table, told apart by the column `h`: what PostgreSQL could have sent.

Every event is chosen among those that the rows there allow, so a judge and the merge must agree on each row.
"""

import random
from dataclasses import dataclass, field
from typing import Any

from tests.spark.histories import UNCHANGED, D, Event, I, Row, T, Transaction, U, tx

KEYS = ("1", "2", "3", "4", "x y", "")
VALUES = (None, "", "a", "b", "c")


@dataclass
class KeyedHistories:
    """Make transactions over a table (h, k, a, b, c) with the key (h, k); under FULL old images are whole rows."""

    seed: int
    histories: int
    full: bool = False
    rows: dict[tuple[int, str], Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.extra: dict[str, Any] = {}

    def add_column(self, name: str, default: Any) -> None:
        """Add a column with a default: rows there show it, without a word in the stream."""
        self.extra[name] = default
        for row in self.rows.values():
            row[name] = default

    def transactions(self, count: int) -> list[Transaction]:
        return [self._transaction() for _ in range(count)]

    def _transaction(self) -> Transaction:
        if self.random.random() < 0.001:
            self.rows.clear()
            return tx(T())
        history = self.random.randrange(self.histories)
        events: list[Event] = []
        for _ in range(self.random.choice((1, 1, 2, 3, 6))):
            events += self._step(history)
        return tx(*events)

    def _step(self, h: int) -> list[Event]:
        there = [k for k in KEYS if (h, k) in self.rows]
        free = [k for k in KEYS if (h, k) not in self.rows]
        choices = ["insert"] * 2 * bool(free) + ["update"] * 4 * bool(there) + ["delete"] * bool(there)
        choices += ["move"] * 3 * bool(there and free) + ["swap"] * (len(there) > 1 and bool(free))
        step = self.random.choice(choices)
        if step == "insert":
            return [self._insert(h, self.random.choice(free))]
        if step == "delete":
            k = self.random.choice(there)
            return [D(self.full, **self._old(self.rows.pop((h, k))))]
        if step == "swap":
            one, other = self.random.sample(there, 2)
            between = self.random.choice(free)
            return [self._update(h, one, between), self._update(h, other, one), self._update(h, between, other)]
        k = self.random.choice(there)
        return [self._update(h, k, self.random.choice(free) if step == "move" else k)]

    def _insert(self, h: int, k: str) -> Event:
        row = {
            "h": h,
            "k": k,
            **{name: self.random.choice(VALUES) for name in ("a", "b")},
            "c": self.random.choice((None, 1, 2)),
        }
        row |= {name: self.random.choice(VALUES) for name in self.extra}
        self.rows[h, k] = row
        return I(**row)

    def _update(self, h: int, k: str, to: str) -> Event:
        before = self.rows.pop((h, k))
        values: dict[str, Any] = {"a": self.random.choice(VALUES), "b": self.random.choice(VALUES)}
        values |= {name: self.random.choice(VALUES) for name in self.extra}
        values = {name: UNCHANGED if self.random.random() < 0.5 else value for name, value in values.items()}
        row = {**before, "k": to, "c": self.random.choice((None, 1, 2, 3))}
        row |= {name: value for name, value in values.items() if value is not UNCHANGED}
        self.rows[h, to] = row
        sent = {**row, **{name: value for name, value in values.items() if value is UNCHANGED}}
        toasted_key = k == to and self.random.random() < 0.1
        if toasted_key:
            sent["k"] = UNCHANGED
        with_old = self.full or k != to or toasted_key
        return U(self._old(before) if with_old else None, full=self.full, **sent)

    def _old(self, row: Row) -> Row:
        return dict(row) if self.full else {"h": row["h"], "k": row["k"]}


@dataclass
class BagHistories:
    """Make transactions over a table (h, a, n) without a key; many rows are equal."""

    seed: int
    histories: int
    rows: dict[int, list[Row]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def transactions(self, count: int) -> list[Transaction]:
        return [tx(*(self._event() for _ in range(self.random.choice((1, 2, 5))))) for _ in range(count)]

    def _event(self) -> Event:
        h = self.random.randrange(self.histories)
        rows = self.rows.setdefault(h, [])
        if not rows or self.random.random() < 0.4:
            rows.append(self._row(h))
            return I(**rows[-1])
        old = rows.pop(self.random.randrange(len(rows)))
        if self.random.random() < 0.5:
            return D(True, **old)
        rows.append(self._row(h))
        left_out = {"a": UNCHANGED} if rows[-1]["a"] == old["a"] and self.random.random() < 0.5 else {}
        return U(old=old, full=True, **{**rows[-1], **left_out})

    def _row(self, h: int) -> Row:
        return {"h": h, "a": self.random.choice((None, "", "x")), "n": self.random.choice((None, "0", "-0", "NaN"))}
