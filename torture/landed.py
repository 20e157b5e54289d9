"""The landing zone judged by itself, without Spark: copy and landed changes applied by hand, against the source.

Capture decides whether a table is right or noticed, so this finds what it overlooks, many rounds in the time that one
takes through the lake. Each round has a database and a pipeline of its own; a table that capture paused is not judged.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from penstock.compare.pg_text import row_texts
from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.source import ddl_trigger
from penstock.source.text_rows import rendered, rendered_rows
from stack.servers.postgres import Database
from tests.pipeline_env import PipelineEnv
from torture import stand
from torture.judge import SECONDS
from torture.model import Model, Table
from torture.report import Report
from torture.rounds import Mix, Torture

Row = dict[str, str | None]
JUDGED = ("copied", "ready")


def search(report: Report, source: Database, home: PipelineEnv, mix: Mix, *, more: Iterator[bool]) -> None:
    """Do rounds while there is to be more, each on tables and a pipeline of its own."""
    for _ in more:
        number = report.round + 1
        with _env(source, home, number) as env:
            torture = Torture(env, report, mix)
            try:
                torture.land(lambda model: judge(env, model))
            finally:
                torture.writers.close()
                torture.stranger.close()


@contextmanager
def _env(source: Database, home: PipelineEnv, number: int) -> Iterator[PipelineEnv]:
    """Bootstrap a pipeline without Spark on databases of its own."""
    with (
        source.server.temporary_database(f"landed{number}") as data,
        home.ledger.server.temporary_database(f"ledger{number}") as ledger,
    ):
        name = f"landed{number}"
        env = PipelineEnv(data, ledger, home.landing, name, catalog=ledger)
        told = number % 2 == 1
        if told:
            env.sql(ddl_trigger.install_statement())
        env.settings = {
            "tables": {"include": ["public.*"], "on_change": "pause"},
            "source": {"slot_timeout": 10, "ddl_trigger": told},
        }
        env.sql(stand.TABLES)
        env.begin(stand.FILLED)
        yield env


def judge(env: PipelineEnv, model: Model) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each table that capture calls sound, and what is wrong with it (nothing: equal)."""
    copies = {copied.oid: copied for copied in env.ctx.ledger.loads.copies(env.name)}
    with rendered(env.ctx.reader, seconds=SECONDS, what="torture") as texts:
        for record in env.ctx.ledger.tables.all(env.name):
            if record.state not in JUDGED or record.left_lsn is not None or record.oid not in copies:
                continue
            table = model.by_name.get((record.schema, record.target[-1]))
            name = f"public.{record.target[-1]}"
            if table is None:
                yield name, ("called sound under a name that the source does not have",)
                continue
            columns = [column.name for column in table.columns if not column.generated]
            heaps = [(leaf.schema, leaf.name) for leaf in model.leaves(table) if leaf.persistence == "p"]
            here = Counter(
                row
                for part in rendered_rows(texts, heaps, columns)
                for row in zip(*(column.to_pylist() for column in part.columns), strict=True)
            )
            yield name, tuple(_unlike(env, record, copies[record.oid], table, columns, here))


def _unlike(
    env: PipelineEnv,
    record: TableRecord,
    copied: LoadRecord,
    table: Table,
    columns: Sequence[str],
    here: Counter[Any],
) -> Iterator[str]:
    known = [column.name for column in record.columns]
    if sorted(known) != sorted(columns):
        yield f"columns are {sorted(set(columns) - set(known))} more and {sorted(set(known) - set(columns))} less at the source"
        return
    try:
        there = Counter(tuple(row[name] for name in columns) for row in landed(env, record, copied))
    except LookupError as error:
        yield f"a change of a row that is not there ({type(error).__name__})"
        return
    missing, extra = here - there, there - here
    if missing or extra:
        columns_ = _columns_that_differ(list(missing.elements()), list(extra.elements()), columns, table.key)
        yield f"{missing.total()} rows missing, {extra.total()} too many of {here.total()}{columns_}"


def _columns_that_differ(missing: list[Any], extra: list[Any], columns: Sequence[str], key: Sequence[str]) -> str:
    """Name the columns in which rows of one key differ."""
    at = [columns.index(name) for name in key if name in columns]
    if not at:
        return ""
    by_key = {tuple(row[n] for n in at): row for row in extra}
    pairs = [(row, other) for row in missing if (other := by_key.get(tuple(row[n] for n in at)))]
    names = sorted({columns[n] for one, other in pairs for n in range(len(columns)) if one[n] != other[n]})
    return f"; the same key with other values in {', '.join(names)}" if names else ""


# --- what was landed --------------------------------------------------------------------------------


def landed(env: PipelineEnv, record: TableRecord, copied: LoadRecord) -> list[Row]:
    """Return a table's rows after its copy and every change; raises LookupError for a change of an absent row."""
    key = [column.name for column in record.columns if column.key]
    missing = {column.name: column.missing_text for column in record.columns}
    rows = _Keyed(key) if key else _Bag()
    for row in _copied(env, copied):
        rows.put({**missing, **row})
    for change in _changes(env, record, copied):
        if change["op"] == "T":
            rows.clear()
            continue
        old = change["old"] or change["new"]
        before = rows.take({**missing, **old} if not key else old) if change["op"] != "I" else {}
        if change["op"] != "D":
            kept = {name: before[name] for name in change["unchanged"] or ()}
            rows.put({**missing, **change["new"], **kept})
    return list(rows)


class _Keyed:
    """Hold rows by their key."""

    def __init__(self, key: Sequence[str]) -> None:
        self.key, self.rows = key, dict[tuple[str | None, ...], Row]()

    def put(self, row: Row) -> None:
        place = tuple(row[name] for name in self.key)
        if place in self.rows:
            raise LookupError("a row was inserted twice")
        self.rows[place] = row

    def take(self, old: Row) -> Row:
        return self.rows.pop(tuple(old[name] for name in self.key))

    def clear(self) -> None:
        self.rows.clear()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows.values())


class _Bag:
    """Hold rows without a key, equal ones as often as they came."""

    def __init__(self) -> None:
        self.rows = Counter[tuple[tuple[str, str | None], ...]]()

    def put(self, row: Row) -> None:
        self.rows[tuple(sorted(row.items()))] += 1

    def take(self, old: Row) -> Row:
        place = tuple(sorted(old.items()))
        if self.rows[place] < 1:
            raise LookupError("a change of a row that is not there")
        self.rows[place] -= 1
        return old

    def clear(self) -> None:
        self.rows.clear()

    def __iter__(self) -> Iterator[Row]:
        return itertools.chain.from_iterable(itertools.repeat(dict(row), count) for row, count in self.rows.items())


def _copied(env: PipelineEnv, copied: LoadRecord) -> Iterator[Row]:
    for entry in copied.files:
        for batch in env.ctx.landing.read(entry.path).to_batches():
            names = [name for name in batch.schema.names if name != "_misfits" or not _is_map(batch, name)]
            columns = [column.to_pylist() for column in row_texts(batch, names)]
            yield from (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _is_map(batch: pa.RecordBatch, name: str) -> bool:
    return bool(pa.types.is_map(batch.schema.field(name).type))


def _changes(env: PipelineEnv, record: TableRecord, copied: LoadRecord) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = []
    for window in env.ctx.ledger.windows.all(env.name):
        for entry in window.files:
            if entry.oid == record.oid:
                changes += env.ctx.landing.read(entry.path).to_pylist()
    unseen = [change for change in changes if not _visible(change["xid"], copied.snapshot)]
    return sorted(unseen, key=lambda each: (each["commit_lsn"], each["ordinal"]))


def _visible(xid: int, snapshot: str) -> bool:
    low, high, running = snapshot.split(":")
    return xid < int(low) or (xid < int(high) and str(xid) not in running.split(","))


__all__ = ["judge", "landed", "search"]
