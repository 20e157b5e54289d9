"""The changelogs hold, per interval of commit time, exactly what the source did: a second slot says what that was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.scenarios import source_history
from tests.scenarios.source_history import Change
from tests.world import World

pytestmark = pytest.mark.spark

TABLES = """
create table keyed (id int primary key, name text, price numeric(10,2), day date, at timestamptz, tags int[], body text);
alter table keyed alter body set storage external;
create table keyless (page text, n int);
alter table keyless replica identity full;
create table appended (what text); alter table appended replica identity full;
create table "Odd.Name" ("a.b" int primary key, "select" bool);
"""
READ: Mapping[str, Callable[[str], Any]] = {
    "id": int,
    "price": Decimal,
    "day": lambda text: None if text == "infinity" else datetime.strptime(text, "%Y-%m-%d").date(),
    "at": datetime.fromisoformat,
    "tags": lambda text: [int(each) for each in text.strip("{}").split(",")],
    "n": int,
    "a.b": int,
    "select": lambda text: text == "t",
}
"""How a test reads the server's texts, by the column's name; what is not here stays text."""


def now(world: World) -> datetime:
    """Return the source's time after everything that has committed."""
    ((time,),) = world.sql("select clock_timestamp()")
    return time.astimezone(UTC)


def begin(world: World) -> str:
    """Bring up a pipeline with a second slot that watches the source; return that slot."""
    world.settings["changelog"] = {"slack": 0}
    world.sql(TABLES)
    world.bootstrap()
    slot = f"watch_{world.source.name}"
    source_history.watch(world, slot)
    return slot


def flush(world: World) -> None:
    """Let capture see all that has committed, and a later time of the source's clock."""
    world.sql("set synchronous_commit = on; select pg_current_xact_id()")
    world.capture()


def logged(world: World, table: str, start: datetime, end: datetime) -> list[dict[str, Any]]:
    """Return an interval's rows of a changelog in commit order, as plain data."""
    assert world.spark is not None
    name = f"lake.{world.name}.public.`{table}__changelog`"
    world.spark.sql(f"refresh table {name}")
    rows = world.spark.table(name).where(f"committed_at >= timestamp '{start}' and committed_at < timestamp '{end}'")
    return [row.asDict(recursive=True) for row in rows.orderBy("era", "commit_lsn", "ordinal").collect()]


def expected(change: Change) -> dict[str, Any]:
    """Return what a changelog must show of a change of the source."""
    return {
        "era": 1,
        "commit_lsn": change.commit_lsn,
        "op": change.op,
        "committed_at": change.committed_at.replace(tzinfo=None),
        "xid": change.xid,
        "origin": change.origin,
        "new": typed(change.new),
        "old": typed(change.old),
        "old_kind": change.old_kind,
        "unknown": change.unknown,
    }


def typed(image: Mapping[str, str | None] | None) -> dict[str, Any] | None:
    if image is None:
        return None
    return {name: None if text is None else plain(READ.get(name, str)(text)) for name, text in image.items()}


def plain(value: Any) -> Any:
    """Return a time without its zone, in UTC: so Spark hands it over."""
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) and value.tzinfo else value


def test_an_interval_holds_exactly_what_the_source_committed_in_it(world16: World) -> None:
    slot = begin(world16)
    start = now(world16)
    world16.sql(
        "insert into keyed values (1, 'one', 1.50, '2024-02-29', '2024-02-29 12:00:00.5+02', '{1,2}', repeat('x', 5000))"
    )
    world16.sql("update keyed set name = 'ONE' where id = 1")
    world16.sql("update keyed set id = 2 where id = 1; insert into keyed (id, day) values (3, 'infinity')")
    world16.sql(
        "insert into keyless values ('home', 1), ('home', 1), (null, null); delete from keyless where page is null"
    )
    world16.sql("insert into appended values (''), (null)")
    world16.sql("""insert into "Odd.Name" values (1, true); update "Odd.Name" set "a.b" = 2""")
    flush(world16)
    middle = now(world16)
    world16.sql("delete from keyed where id = 2; update keyless set n = 2; truncate appended, keyed")
    world16.sql("insert into keyed (id) values (9)")
    flush(world16)
    end = now(world16)
    flush(world16)

    filled = world16.changelog(start, middle)
    world16.changelog(middle, end)

    assert filled.rows == sum(table["rows"] for table in filled.tables) > 0
    for table in ("keyed", "keyless", "appended", "Odd.Name"):
        history = source_history.changes(world16, slot, table)
        lake = table.replace(".", "_")
        assert history
        for since, until in ((start, middle), (middle, end)):
            wanted = [expected(change) for change in history if since <= change.committed_at < until]
            found = logged(world16, lake, since, until)
            ordinals = [row.pop("ordinal") for row in found]
            misfits = [(row.pop("new_misfits"), row.pop("old_misfits")) for row in found]
            assert found == wanted, table
            assert [row["op"] for row in found] == [row["op"] for row in wanted]
            if (table, since) == ("keyed", start):
                assert misfits[-1] == ({"day": "infinity"}, None)
                assert any(row["unknown"] == ["body"] for row in found)
            else:
                assert set(misfits) <= {(None, None)}
            assert len(set(ordinals)) == len(ordinals)
