"""What the scenarios of tables that join and leave share."""

from penstock.flow.load.spark_copy import Earlier, ReadRequest, copied_files, copy_tables
from penstock.flow.load.waiting import hindered
from penstock.ledger import new_attempt
from penstock.ledger.loads import NewRead
from penstock.source import session, slot
from penstock.source.catalog_snapshot import read_catalog
from tests.pipeline_env import PipelineEnv, copy_without_spark


def begin(env: PipelineEnv, tables: str = "create table t (id int primary key); insert into t values (1)") -> None:
    """Bootstrap a pipeline over some tables, without Spark."""
    env.begin(tables)


def states(env: PipelineEnv) -> dict[str, str]:
    """Name the state of every table, as `waiting` for one that joined and is not copied."""
    found = env.tables
    return {table.name: "waiting" if table.waits else table.state for table in found}


def messages(env: PipelineEnv, slug: str) -> list[str]:
    """Return the messages of all events of a slug, oldest first."""
    return [event.message for event in reversed(env.ctx.ledger.events.all(env.name, limit=1000)) if event.slug == slug]


def members(env: PipelineEnv) -> set[str]:
    """Name the tables that the server says are published."""
    name = env.ctx.pipeline.publication
    return {row[0] for row in env.sql(f"select tablename from pg_publication_tables where pubname = '{name}'")}


def copy_waiting(env: PipelineEnv, *, wait: float = 20) -> list[str]:
    """Copy the tables that wait, without Spark."""
    ctx = env.ctx
    tables, copy_id = [each for each in ctx.ledger.tables.all(env.name) if each.waits], new_attempt()
    assert hindered(ctx, tables, wait=wait) == {}
    with slot.export_snapshot(ctx.source) as exported:
        oids = [table.oid for table in tables]
        with session.connect(ctx.source, what="test") as conn:
            found = read_catalog(conn, ctx.pipeline.publication, sizes=True).tables
        requests = [ReadRequest(each, NewRead(each.oid)) for each in found if each.oid in oids]
        reads = [each.new for each in requests]
        ctx.ledger.loads.start_reads(
            env.name, copy_id=copy_id, snapshot=exported.snapshot, lsn=exported.lsn, reads=reads
        )
        copy_tables(ctx, exported, copy_id, requests, copy_without_spark, earlier=Earlier())
    for oid in oids:
        ctx.ledger.loads.finish_copy(
            env.name, copy_id=copy_id, oid=oid, files=copied_files(ctx, copy_id, oid, "t") or []
        )
    return [table.name for table in tables]


def adopt(env: PipelineEnv, publication: str) -> None:
    """Let the owner make the publication, which Penstock takes over."""
    name = env.ctx.pipeline.publication
    env.settings["source"] = {**env.settings["source"], "adopt": True}
    env.sql(f"create publication {name} {publication}")
