"""Several writers with transactions of their own, interleaved by one random generator in one thread.

So a run can be repeated: nothing races. What a real race would bring, a lock that another holds, ends after
`lock_timeout` as a failed statement; transactions stay open across captures and merges, some are prepared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
from psycopg.pq import TransactionStatus

from stack.servers.postgres import Database
from torture.model import Model, Table, quoted
from torture.values import IDS, literal, row

SETTINGS = "set lock_timeout = '150ms'; set statement_timeout = '60s'; set client_min_messages = error"

_PREPARED = "select gid from pg_prepared_xacts p where database = current_database()"
_EXCLUSIVELY = (
    "select from pg_locks own join pg_locks l using (virtualtransaction) where own.transactionid = p.transaction "
    "and l.pid is null and l.mode = 'AccessExclusiveLock' and l.locktype = 'relation'"
)

Note = Callable[[str, str, str], None]
"""Take down who ran which statement, and what came of it."""


# --- one statement ----------------------------------------------------------------------------------


def statement(dice: random.Random, model: Model, table: Table) -> str:
    """Return one statement that changes rows of a table."""
    chosen = dice.choices(
        (insert, update, update_some, delete, move, between, truncate), weights=(30, 25, 15, 12, 14, 3, 1)
    )[0]
    return chosen(dice, model, table)


def insert(dice: random.Random, model: Model, table: Table) -> str:
    """Insert a row, or write over the one that is there."""
    text = f"insert into {table.sql} {row(dice, table, model)}"
    return f"{text} on conflict do nothing" if table.key and not table.late else text


def update(dice: random.Random, model: Model, table: Table) -> str:
    """Change one column of about a tenth of the rows; what is stored out of line stays as it is elsewhere."""
    column = dice.choice([each for each in table.free if each.name not in table.key] or table.free or table.columns)
    return f"update {table.sql} set {column.sql} = {literal(dice, column, model.labels)} where {_some(dice, table, 10)}"


def update_some(dice: random.Random, model: Model, table: Table) -> str:
    """Change a few columns of many rows."""
    free = [each for each in table.free if each.name not in table.key]
    if not free:
        return insert(dice, model, table)
    chosen = dice.sample(free, min(len(free), 2))
    sets = ", ".join(f"{column.sql} = {literal(dice, column, model.labels)}" for column in chosen)
    return f"update {table.sql} set {sets} where {_some(dice, table, 2)}"


def delete(dice: random.Random, model: Model, table: Table) -> str:
    """Delete some rows; of equal ones not all."""
    return f"delete from {table.sql} where {_some(dice, table, 12)}"


def move(dice: random.Random, model: Model, table: Table) -> str:
    """Give rows other keys: to a free place, three rows round in a circle, or each to where the next one is, if the key lets it."""
    whole = [name for name in table.key if table.column(name).base in ("integer", "bigint") and table.column(name).free]
    if not whole:
        return update(dice, model, table)
    key = quoted(dice.choice(whole))
    if table.late and dice.random() < 0.5:
        return f"update {table.sql} set {key} = {key} + {dice.choice((-1, 1))}"
    if dice.random() < 0.3:
        one, other = dice.sample(range(1, IDS), 2)
        return f"update {table.sql} set {key} = case {key} when {one} then -{other} else -{one} end where {key} in ({one}, {other})"
    return f"update {table.sql} set {key} = {key} + {dice.choice((-7, 1, 100, 1000))} where {key} % 17 = {dice.randrange(17)}"


def between(dice: random.Random, model: Model, table: Table) -> str:
    """Take rows out and put them in again in one statement."""
    columns = ", ".join(column.sql for column in table.free)
    return (
        f"with gone as (delete from {table.sql} where {_some(dice, table, 8)} returning {columns}) "
        f"insert into {table.sql} ({columns}) select {columns} from gone"
    )


def truncate(dice: random.Random, model: Model, table: Table) -> str:
    """Empty a table, or only a partition of it, or two at once."""
    leaves = model.leaves(table)
    if table.kind == "p" and leaves and dice.random() < 0.4:
        return f"truncate {dice.choice(leaves).sql}"
    other = dice.choice(model.roots)
    both = f", {other.sql}" if other is not table and dice.random() < 0.3 else ""
    return f"truncate {table.sql}{both}"


def _some(dice: random.Random, table: Table, share: int) -> str:
    whole = [column for column in table.columns if column.base in ("integer", "bigint", "smallint")]
    if whole:
        return f"{dice.choice(whole).sql} % {share} = {dice.randrange(share)}"
    return f"ctid in (select t.ctid from {table.sql} t order by t::text limit {dice.randint(1, 4)})"


# --- several writers --------------------------------------------------------------------------------


@dataclass
class Writer:
    """Hold one connection and the savepoints of its transaction."""

    name: str
    conn: psycopg.Connection | None = None
    savepoints: int = 0

    @property
    def within(self) -> bool:
        """Return whether a transaction is open."""
        return self.conn is not None and self.conn.info.transaction_status != TransactionStatus.IDLE


@dataclass
class Writers:
    """Let some writers work in turn."""

    database: Database
    note: Note
    writers: list[Writer] = field(default_factory=lambda: [Writer(f"writer {n}") for n in range(1, 5)])
    prepared: list[str] = field(default_factory=list)
    numbers: int = 0

    def step(self, dice: random.Random, model: Model) -> None:
        """Let one writer take one step."""
        writer = dice.choice(self.writers)
        for text in self._next(dice, model, writer):
            if not self.run(writer, text):
                break

    def run(self, writer: Writer, text: str) -> bool:
        """Run a statement of a writer; one that fails ends its transaction, or what followed the last savepoint."""
        try:
            if writer.conn is None or writer.conn.closed:
                writer.conn, writer.savepoints = self.database.connect(), 0
                writer.conn.execute(SETTINGS)
            writer.conn.execute(text.encode())
        except psycopg.Error as error:
            self.note(writer.name, text, failure(error))
            self._clean(writer)
            return False
        self.note(writer.name, text, "")
        return True

    def quiesce(self, dice: random.Random, *, keep: bool = False) -> None:
        """End all transactions, or keep some that only read and wrote rows; prepared ones, too."""
        for writer in self.writers:
            if writer.within and not (keep and dice.random() < 0.5 and not self._exclusive(writer)):
                self.run(writer, dice.choice(("commit", "commit", "rollback")))
        self._finish_prepared(dice, only_exclusive=keep)

    def release(self, dice: random.Random, *, every: bool = False) -> None:
        """End the transactions that readers would wait for; with `every` all, for which the making of a slot waits."""
        if every:
            self._finish_prepared(dice)
        for writer in self.writers:
            if writer.within and (every or self._exclusive(writer)):
                self.run(writer, dice.choice(("commit", "rollback")))

    def prepared_name(self) -> str:
        """Return the name of a transaction that is about to be prepared; a writer ends it some time."""
        self.numbers += 1
        self.prepared.append(f"torture{self.numbers}")
        return self.prepared[-1]

    def close(self) -> None:
        """Leave the server."""
        for writer in self.writers:
            if writer.conn is not None:
                with suppress(psycopg.Error):
                    writer.conn.close()

    def _next(self, dice: random.Random, model: Model, writer: Writer) -> Iterator[str]:
        chosen = dice.random()
        if not writer.within:
            writer.savepoints = 0
            if chosen < 0.6:
                yield "begin"
            elif chosen < 0.63 and self.prepared:
                yield f"{dice.choice(('commit', 'rollback'))} prepared '{self.prepared.pop()}'"
                return
        elif chosen < 0.22:
            yield dice.choice(("commit", "commit", "commit", "rollback"))
            return
        elif chosen < 0.30:
            writer.savepoints += 1
            yield f"savepoint s{writer.savepoints}"
        elif chosen < 0.36 and writer.savepoints:
            yield f"rollback to savepoint s{dice.randint(1, writer.savepoints)}"
            return
        elif chosen < 0.38:
            yield f"prepare transaction '{self.prepared_name()}'"
            return
        tables = [table for table in model.roots if table.free]
        if tables:
            table = dice.choice(tables)
            for _ in range(dice.randint(1, 3)):
                yield statement(dice, model, table)

    def _clean(self, writer: Writer) -> None:
        writer.savepoints = 0
        if writer.conn is not None and not writer.conn.closed and writer.within:
            self.note(writer.name, "rollback", "")
            with suppress(psycopg.Error):
                writer.conn.execute("rollback")

    def _exclusive(self, writer: Writer) -> bool:
        """Return whether a transaction holds a lock that readers would wait for."""
        held = "select count(*) from pg_locks where pid = pg_backend_pid() and mode = 'AccessExclusiveLock' and locktype = 'relation'"
        try:
            found = writer.conn.execute(held).fetchone() if writer.conn is not None else None
        except psycopg.Error:  # its server was stopped
            return False
        return bool(found and found[0])

    def _finish_prepared(self, dice: random.Random, *, only_exclusive: bool = False) -> None:
        with self.database.connect() as conn:
            found = conn.execute(
                _PREPARED + (f" and exists ({_EXCLUSIVELY})" if only_exclusive else "") + " order by 1"
            )
            for (name,) in found.fetchall():
                text = f"{dice.choice(('commit', 'rollback'))} prepared '{name}'"
                conn.execute(text.encode())
                self.note("admin", text, "")
        if only_exclusive:
            return
        self.prepared.clear()


def failure(error: psycopg.Error) -> str:
    """Name a failure by its class and first line."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160]
