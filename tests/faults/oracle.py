"""What the landed windows say, applied by hand, against what the source says: without Spark and without its casts."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from penstock.ledger.table_records import LoadRecord, TableRecord
from penstock.lsn import Lsn
from tests.pipeline_env import PipelineEnv

Row = tuple[str | None, ...]


def landed(env: PipelineEnv, table: str, key: str) -> dict[str | None, Row]:
    """Return the rows of a keyed table after its copy and every staged change, as texts; each change exactly once."""
    record, copied = _known(env, table)
    rows: dict[str | None, dict[str, Any]] = {}
    changes, truncated = _changes(env, record, copied)
    for row in () if truncated else _copied(env, copied):
        assert row[key] not in rows, "a row was copied twice"
        rows[row[key]] = row
    for change in changes:
        _apply(rows, change, key)
    names = [column.name for column in record.columns]
    return {value: tuple(row[name] for name in names) for value, row in rows.items()}


def landed_multiset(env: PipelineEnv, table: str) -> Counter[Row]:
    """Return the rows of a table without a key, and how often each is there, after its copy and every staged change."""
    record, copied = _known(env, table)
    names = [column.name for column in record.columns]
    changes, truncated = _changes(env, record, copied)
    base = () if truncated else _copied(env, copied)
    rows: Counter[Row] = Counter(tuple(row[name] for name in names) for row in base)
    for change in changes:
        if change["op"] in ("U", "D"):
            assert change["old_kind"] == "O", "a change of a table without a key must bring its whole old row"
            old = tuple(change["old"][name] for name in names)
            assert rows[old] > 0, "a change of a row that is not there"
            rows[old] -= 1
        if change["op"] in ("I", "U"):
            left_out = change["unchanged"] or ()
            rows[tuple(change["old" if name in left_out else "new"][name] for name in names)] += 1
    return +rows


def at_source(env: PipelineEnv, table: str, key: str) -> dict[str | None, Row]:
    """Return the source's rows as texts."""
    found = env.source.execute(f'select {key}::text, t.* from "{table}" t')
    return {row[0]: _texts(row[1:]) for row in found}


def multiset_at_source(env: PipelineEnv, table: str) -> Counter[Row]:
    """Return the source's rows as texts, and how often each is there."""
    return Counter(_texts(row) for row in env.source.execute(f'select * from "{table}"'))


def _texts(row: tuple[Any, ...]) -> Row:
    return tuple(None if value is None else str(value) for value in row)


def _known(env: PipelineEnv, table: str) -> tuple[TableRecord, LoadRecord]:
    record = env.table(table)
    (copied,) = (each for each in env.ctx.ledger.loads.copies(env.name) if each.oid == record.oid)
    return record, copied


def _copied(env: PipelineEnv, copied: LoadRecord) -> Iterator[dict[str, Any]]:
    for entry in copied.files:
        for row in env.ctx.landing.read(entry.path).to_pylist():
            yield dict(zip(row, _texts(tuple(row.values())), strict=True))  # some columns are values


def _changes(env: PipelineEnv, record: TableRecord, copied: LoadRecord) -> tuple[list[dict[str, Any]], bool]:
    """Return the staged changes that the copy's snapshot did not see, in commit order, from the last TRUNCATE on.

    Before a TRUNCATE even the copy counts no more: it is not MVCC-safe, a copy under an older snapshot reads nothing.
    """
    ctx = env.ctx
    changes: list[dict[str, Any]] = []
    reached = Lsn(0)
    for window in ctx.ledger.windows.all(env.name):
        assert window.from_lsn >= reached, "windows overlap"
        reached = window.upto_lsn
        for entry in window.files:
            if entry.oid == record.oid:
                changes += ctx.landing.read(entry.path).to_pylist()
    unseen = [change for change in changes if not _visible(change["xid"], copied.snapshot)]
    unseen.sort(key=lambda each: (each["commit_lsn"], each["ordinal"]))
    last = max((place for place, change in enumerate(unseen) if change["op"] == "T"), default=None)
    return (unseen, False) if last is None else (unseen[last + 1 :], True)


def _apply(rows: dict[str | None, dict[str, Any]], change: dict[str, Any], key: str) -> None:
    old = change["old"] or change["new"]
    if change["op"] != "I":
        before = rows.pop(old[key])  # a change of a row that is not there raises KeyError
    if change["op"] == "D":
        return
    after = dict(change["new"])
    for name in change["unchanged"] or ():
        after[name] = before[name]
    assert after[key] not in rows, "a row was inserted twice"
    rows[after[key]] = after


def _visible(xid: int, snapshot: str) -> bool:
    low, high, running = snapshot.split(":")
    return xid < int(low) or (xid < int(high) and str(xid) not in running.split(","))
