"""One table cannot be merged: it pauses with the reason, the cut holds all others, and a resync brings it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import LakeError
from penstock.flow.merge import run as merge
from penstock.flow.rebuild import run as rebuild
from penstock_spark import merge as merging
from penstock_spark import table_merge
from tests.pipeline_env import PipelineEnv
from tests.scenarios.recovery import equal, flush

pytestmark = pytest.mark.spark

GONE = ("data", "vector", "manifest", "metadata", "pointer")
TABLES = (*GONE, "fine")
SECRET = "value-that-stays-at-home"


def make(world: PipelineEnv, tables: tuple[str, ...] = TABLES) -> None:
    """Bootstrap tables of ten rows, and merge changes of each, so that each has deletion vectors."""
    for table in tables:
        world.sql(
            f"create table {table} (id int primary key, s text);"
            f"insert into {table} select n, 's' || n from generate_series(1, 10) n"
        )
    world.bootstrap()
    change(world, tables, "update {} set s = s || '+' where id % 3 = 0")
    world.merge()


def change(world: PipelineEnv, tables: tuple[str, ...], statement: str) -> None:
    for table in tables:
        world.sql(statement.format(table))
    flush(world)
    world.capture()


def states(world: PipelineEnv) -> dict[str, tuple[str, str | None]]:
    return {table.name: (table.state, table.paused_slug) for table in world.ctx.ledger.tables.all(world.name)}


def reason(world: PipelineEnv, name: str) -> str:
    (found,) = (table for table in world.ctx.ledger.tables.all(world.name) if table.name == name)
    return found.paused_reason or ""


def remove(world: PipelineEnv, table: str, what: str) -> None:
    """Delete what a careless hand deletes: files of one kind of a table, or its row in the catalog."""
    assert world.lake is not None
    row = (f"{world.name}.public", table)
    if what == "pointer":
        world.lake.database.execute("delete from iceberg_tables where table_namespace = %s and table_name = %s", *row)
        return
    if what == "metadata":
        shown = "select metadata_location from iceberg_tables where table_namespace = %s and table_name = %s"
        ((location,),) = world.lake.database.execute(shown, *row)
        delete(location)
        return
    view, column = {"data": ("data_files", "file_path"), "vector": ("delete_files", "file_path")}.get(
        what, ("manifests", "path")
    )
    assert world.spark is not None
    found = world.spark.sql(f"select distinct {column} from lake.{world.name}.public.{table}.{view}").collect()
    assert found
    for each in found:
        delete(each[0])


def delete(uri: str) -> None:
    path = Path(uri.removeprefix("file:"))
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def test_tables_with_files_gone_pause_and_all_others_are_published_and_each_is_resynced(world16: PipelineEnv) -> None:
    make(world16)
    for table in GONE:
        remove(world16, table, table)
    change(
        world16, TABLES, "update {} set s = s || '!' where id % 2 = 0; delete from {} where id = 1".replace("{}", "{0}")
    )

    world16.merge()

    paused = dict.fromkeys(GONE, ("paused", "lake-unreadable"))
    assert states(world16) == {**paused, "pointer": ("paused", "foreign-commit"), "fine": ("ready", None)}
    for table in paused.keys() - {"pointer"}:
        assert "NotFoundException" in reason(world16, table)
        assert "resync" in reason(world16, table)
    assert sorted(world16.lake_rows("fine")) == sorted((*row, None) for row in world16.sql("select * from fine"))

    ids = rebuild.resync(world16.ctx, [f"public.{table}" for table in GONE], world16.submit)
    assert rebuild.switch(world16.ctx, ids, world16.submit)

    assert set(states(world16).values()) == {("ready", None)}
    equal(world16)
    change(world16, TABLES, "update {} set s = s || '?' where id > 5")
    world16.merge()
    assert set(states(world16).values()) == {("ready", None)}
    equal(world16)


@pytest.mark.slow
def test_a_metadata_file_that_was_cut_short_pauses_its_table_and_is_resynced(world16: PipelineEnv) -> None:
    make(world16, ("short", "fine"))
    cut_short(world16, "short")
    change(world16, ("short", "fine"), "update {} set s = s || '!'")

    world16.merge()

    assert states(world16) == {"short": ("paused", "lake-unreadable"), "fine": ("ready", None)}
    assert "RuntimeIOException" in reason(world16, "short")
    ids = rebuild.resync(world16.ctx, ["public.short"], world16.submit)
    assert rebuild.switch(world16.ctx, ids, world16.submit)
    equal(world16)


def cut_short(world: PipelineEnv, table: str) -> None:
    """Leave half of the metadata file that the catalog shows, as a disk that was full does."""
    assert world.lake is not None
    shown = "select metadata_location from iceberg_tables where table_namespace = %s and table_name = %s"
    ((location,),) = world.lake.database.execute(shown, f"{world.name}.public", table)
    path = Path(location.removeprefix("file:"))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@pytest.mark.slow
def test_an_error_without_a_kind_pauses_its_table_and_says_no_value(
    world16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(world16, ("fine", "odd"))
    change(world16, ("fine", "odd"), f"insert into {{}} values (99, '{SECRET}')")
    tries = broken(monkeypatch, "odd", lambda session: session.sql(f"select raise_error('{SECRET}')").collect())

    world16.merge()

    assert states(world16) == {"fine": ("ready", None), "odd": ("paused", "merge-failed")}
    assert len(tries) == 2
    assert "USER_RAISED_EXCEPTION" in reason(world16, "odd")
    assert SECRET not in reason(world16, "odd")
    monkeypatch.undo()
    world16.ctx.ledger.tables.resume(
        world16.name, next(t.oid for t in world16.ctx.ledger.tables.all(world16.name) if t.name == "odd")
    )
    world16.merge(force=True)
    equal(world16)


@pytest.mark.slow
def test_what_passes_is_tried_again_in_the_same_run(world16: PipelineEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    make(world16, ("fine", "odd"))
    change(world16, ("fine", "odd"), "delete from {} where id = 3")
    tries = broken(monkeypatch, "odd", lambda session: session.sql("select raise_error('once')").collect(), times=1)

    world16.merge()

    assert len(tries) == 2
    assert set(states(world16).values()) == {("ready", None)}
    equal(world16)


@pytest.mark.slow
def test_what_concerns_the_whole_run_fails_it_and_pauses_nothing(
    world16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(world16, ("a", "b", "c"))
    change(world16, ("a", "b", "c"), "delete from {} where id = 3")

    def out_of_memory(session: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        broken(patched, "a", out_of_memory)
        fails(world16, MemoryError)
    with monkeypatch.context() as patched:  # all tables, for one reason
        broken(patched, "", lambda session: session.sql("select raise_error('x')").collect())
        fails(world16, LakeError, "spark-failed.*all 3 tables.*USER_RAISED_EXCEPTION")
    with monkeypatch.context() as patched:  # one table fails, and so does what every run needs
        broken(patched, "a", lambda session: session.sql("select raise_error('x')").collect())
        patched.setattr(merging, "record_cut", no_store)
        fails(world16, OSError, "the store is gone")

    assert set(states(world16).values()) == {("ready", None)}
    world16.merge()
    equal(world16)


def no_store(*_: Any) -> None:
    raise OSError("the store is gone")


def fails(world: PipelineEnv, kind: type[Exception], match: str | None = None) -> None:
    attempt = merge.plan(world.ctx)
    assert attempt is not None
    with pytest.raises(kind, match=match):
        world.submit(merge.job(world.ctx, attempt))


def broken(
    monkeypatch: pytest.MonkeyPatch, table: str, fault: Callable[[Any], object], times: int = 1 << 30
) -> list[str]:
    """Let the merges of one table (of all for an empty name) meet a fault; return a list that grows with each try."""
    run, tries = table_merge.TableMerge.run, []

    def wrapped(self: table_merge.TableMerge) -> Any:
        if not table or self.order.table == table:
            tries.append(self.order.table)
            if len(tries) <= times:
                fault(self.session)
        return run(self)

    monkeypatch.setattr(table_merge.TableMerge, "run", wrapped)
    return tries
