"""What the tests of changelogs share: a watched source, intervals of its history, and what the changelogs must show."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.pipeline_env import PipelineEnv
from tests.scenarios import source_history
from tests.scenarios.source_history import Change

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


def now(env: PipelineEnv) -> datetime:
    """Return the source's time after everything that has committed."""
    time: datetime
    ((time,),) = env.sql("select clock_timestamp()")
    return time.astimezone(UTC)


def begin(env: PipelineEnv) -> str:
    """Bring up a pipeline with a second slot that watches the source; return that slot."""
    env.settings["changelog"] = {"slack": 0}
    env.bootstrap(TABLES)
    slot = f"watch_{env.source.name}"
    source_history.watch(env, slot)
    return slot


def flush(env: PipelineEnv) -> None:
    """Let capture see all that has committed, and a later time of the source's clock."""
    env.land("set synchronous_commit = on; select pg_current_xact_id()")


def logged(env: PipelineEnv, table: str, start: datetime, end: datetime) -> list[dict[str, Any]]:
    """Return an interval's rows of a changelog in commit order, as plain data."""
    name = f"lake.{env.name}.public.`{table}__changelog`"
    env.spark.sql(f"refresh table {name}")
    rows = env.spark.table(name).where(f"committed_at >= timestamp '{start}' and committed_at < timestamp '{end}'")
    return [row.asDict(recursive=True) for row in rows.orderBy("era", "commit_lsn", "ordinal").collect()]


def holds(env: PipelineEnv, slot: str, table: str, start: datetime, end: datetime) -> list[str]:
    """Assert that an interval of a changelog is exactly what the source did; return the kinds of its changes."""
    history = source_history.changes(env, slot, table)
    found = logged(env, table.replace(".", "_"), start, end)
    wanted = [expected(change) for change in history if start <= change.committed_at < end]
    places = [(row["commit_lsn"], row.pop("ordinal")) for row in found]
    assert len(set(places)) == len(places)
    assert [{name: row[name] for name in wanted[0]} for row in found] == wanted if wanted else found == []
    return [change["op"] for change in wanted]


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
