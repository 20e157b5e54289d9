"""One table cannot be merged: it pauses with the reason, the cut holds all others, and a resync brings it back."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.engine import task
from penstock.engine.failure import EngineFailure
from penstock.errors import LakeError
from penstock.flow.merge import run as merge
from penstock_spark import merge as merging
from penstock_spark import table_merge
from tests.env_fixtures import Command
from tests.pipeline_env import PipelineEnv

pytestmark = pytest.mark.spark

GONE = ("data", "vector", "manifest", "metadata", "pointer")
TABLES = (*GONE, "fine")
SECRET = "value-that-stays-at-home"


def make(env: PipelineEnv, tables: tuple[str, ...] = TABLES) -> None:
    """Bootstrap tables of ten rows, and merge changes of each, so that each has deletion vectors."""
    for table in tables:
        env.sql(
            f"create table {table} (id int primary key, s text);"
            f"insert into {table} select n, 's' || n from generate_series(1, 10) n"
        )
    env.bootstrap()
    change(env, tables, "update {} set s = s || '+' where id % 3 = 0")
    env.merge()


def change(env: PipelineEnv, tables: tuple[str, ...], statement: str) -> None:
    for table in tables:
        env.sql(statement.format(table))
    env.land()


def reason(env: PipelineEnv, name: str) -> str:
    return env.table(name).paused_reason or ""


def paths(env: PipelineEnv, table: str, what: str) -> list[str]:
    """Return the paths of what `remove` deletes."""
    if what == "metadata":
        shown = "select metadata_location from iceberg_tables where table_namespace = %s and table_name = %s"
        assert env.lake is not None
        ((location,),) = env.lake.database.execute(shown, f"{env.name}.public", table)
        return [location.removeprefix("file:").removeprefix("//")]
    view, column = {"data": ("data_files", "file_path"), "vector": ("delete_files", "file_path")}.get(
        what, ("manifests", "path")
    )
    found = env.spark.sql(f"select distinct {column} from lake.{env.name}.public.{table}.{view}").collect()
    return [each[0].removeprefix("file:").removeprefix("//") for each in found]


def remove(env: PipelineEnv, table: str, what: str) -> None:
    """Delete what a careless hand deletes: files of one kind of a table, or its row in the catalog."""
    assert env.lake is not None
    row = (f"{env.name}.public", table)
    if what == "pointer":
        env.lake.database.execute("delete from iceberg_tables where table_namespace = %s and table_name = %s", *row)
        return
    if what == "metadata":
        shown = "select metadata_location from iceberg_tables where table_namespace = %s and table_name = %s"
        ((location,),) = env.lake.database.execute(shown, *row)
        delete(location)
        return
    view, column = {"data": ("data_files", "file_path"), "vector": ("delete_files", "file_path")}.get(
        what, ("manifests", "path")
    )
    found = env.spark.sql(f"select distinct {column} from lake.{env.name}.public.{table}.{view}").collect()
    assert found
    for each in found:
        delete(each[0])


def delete(uri: str) -> None:
    path = Path(uri.removeprefix("file:"))
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@pytest.mark.slow
def test_tables_with_files_gone_pause_and_all_others_are_published_and_each_is_resynced(env16: PipelineEnv) -> None:
    make(env16)
    for table in GONE:
        remove(env16, table, table)
    change(
        env16, TABLES, "update {} set s = s || '!' where id % 2 = 0; delete from {} where id = 1".replace("{}", "{0}")
    )

    env16.merge()

    paused = dict.fromkeys(GONE, ("paused", "lake-unreadable"))
    assert env16.states() == {**paused, "pointer": ("paused", "foreign-commit"), "fine": ("ready", None)}
    for table in paused.keys() - {"pointer"}:
        assert re.search(r"(Exception|FileNotFoundError) at ", reason(env16, table))
        assert "resync" in reason(env16, table)
    assert sorted(env16.lake_rows("fine")) == sorted((*row, None) for row in env16.sql("select * from fine"))

    assert env16.resync(*(f"public.{table}" for table in GONE))

    assert set(env16.states().values()) == {("ready", None)}
    assert env16.unlike() == []
    change(env16, TABLES, "update {} set s = s || '?' where id > 5")
    env16.merge()
    assert set(env16.states().values()) == {("ready", None)}
    assert env16.unlike() == []


@pytest.mark.slow
def test_a_verb_that_pauses_a_table_ends_with_the_status_of_that_and_names_the_whole_path(
    env16: PipelineEnv, penstock: Command
) -> None:
    make(env16)
    gone = {table: paths(env16, table, table) for table in ("data", "vector", "manifest", "metadata")}
    for table in gone:
        remove(env16, table, table)
    change(env16, TABLES, "update {} set s = s || '!' where id % 2 = 0")

    ended = penstock("merge")

    assert ended.exit_code == 6, ended.output
    events = {event.message for event in env16.ctx.ledger.events.all(env16.name, limit=1000)}
    for table, files in gone.items():
        assert any(file in reason(env16, table) for file in files), (reason(env16, table), files)
        assert reason(env16, table) in events
        (line,) = (line for line in ended.output.splitlines() if f"paused public.{table}: " in line)
        assert reason(env16, table).rstrip(".") in line
        assert line.endswith("See docs/runbooks/lake-unreadable.md.")
    assert "4 tables paused: public.data, public.vector, public.manifest, public.metadata" in ended.output
    assert penstock("merge", "--force").exit_code == 0  # nothing more was paused
    reported = json.loads(penstock("merge", "--force", "--json").stdout)
    assert reported.keys() == {"pipeline", "attempt"}


@pytest.mark.slow
def test_maintenance_does_all_other_tables_and_then_says_which_it_could_not(env16: PipelineEnv) -> None:
    make(env16, ("data", "manifest", "fine"))
    for table in ("data", "manifest"):
        remove(env16, table, table)

    with pytest.raises(LakeError, match=r"\[lake-unreadable\] expected all tables to be maintained; 2 of 4 were not"):
        env16.maintain()

    (run,) = env16.ctx.ledger.maintenance.all(env16.name, limit=2)
    assert run.report is not None
    left = {each["target"][-1]: (each["slug"], each["after"] is not None) for each in run.report["lake"]["tables"]}
    assert left == {
        "data": ("lake-unreadable", False),
        "manifest": ("lake-unreadable", False),
        "fine": (None, True),
        "_penstock_cuts": (None, True),
    }


@pytest.mark.slow
def test_a_metadata_file_that_was_cut_short_pauses_its_table_and_is_resynced(env16: PipelineEnv) -> None:
    make(env16, ("short", "fine"))
    cut_short(env16, "short")
    change(env16, ("short", "fine"), "update {} set s = s || '!'")

    env16.merge()

    assert env16.states() == {"short": ("paused", "lake-unreadable"), "fine": ("ready", None)}
    assert "RuntimeIOException" in reason(env16, "short")
    assert env16.resync("public.short")
    assert env16.unlike() == []


def cut_short(env: PipelineEnv, table: str) -> None:
    """Leave half of the metadata file that the catalog shows, as a disk that was full does."""
    assert env.lake is not None
    shown = "select metadata_location from iceberg_tables where table_namespace = %s and table_name = %s"
    ((location,),) = env.lake.database.execute(shown, f"{env.name}.public", table)
    path = Path(location.removeprefix("file:"))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


@pytest.mark.slow
def test_an_error_without_a_kind_pauses_its_table_and_says_no_value(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(env16, ("fine", "odd"))
    change(env16, ("fine", "odd"), f"insert into {{}} values (99, '{SECRET}')")
    tries = broken(monkeypatch, "odd", lambda session: session.sql(f"select raise_error('{SECRET}')").collect())

    env16.merge()

    assert env16.states() == {"fine": ("ready", None), "odd": ("paused", "merge-failed")}
    assert len(tries) == 2
    assert "USER_RAISED_EXCEPTION" in reason(env16, "odd")
    assert SECRET not in reason(env16, "odd")
    monkeypatch.undo()
    env16.ctx.ledger.tables.resume(env16.name, env16.table("odd").oid)
    env16.merge(force=True)
    assert env16.unlike() == []


@pytest.mark.slow
def test_what_passes_is_tried_again_in_the_same_run(env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    make(env16, ("fine", "odd"))
    change(env16, ("fine", "odd"), "delete from {} where id = 3")
    tries = broken(monkeypatch, "odd", lambda session: session.sql("select raise_error('once')").collect(), times=1)

    env16.merge()

    assert len(tries) == 2
    assert set(env16.states().values()) == {("ready", None)}
    assert env16.unlike() == []


@pytest.mark.slow
def test_tables_that_all_fail_in_one_way_each_pause_and_a_resync_brings_them_back(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(env16, ("a", "b", "c", "d"))
    change(env16, ("a", "b", "c", "d"), "delete from {} where id = 3")

    with monkeypatch.context() as patched:
        broken(patched, "", lambda session: session.sql("select raise_error('x')").collect())
        env16.merge()

    assert env16.states() == dict.fromkeys(("a", "b", "c", "d"), ("paused", "merge-failed"))
    assert env16.resync("public.a", "public.b")
    for table in env16.tables:
        if table.state == "paused":
            env16.ctx.ledger.tables.resume(env16.name, table.oid)
    env16.merge(force=True)
    assert set(env16.states().values()) == {("ready", None)}
    assert env16.unlike() == []


@pytest.mark.slow
def test_what_concerns_the_whole_run_fails_it_and_pauses_nothing(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(env16, ("a", "b", "c"))
    change(env16, ("a", "b", "c"), "delete from {} where id = 3")

    def out_of_memory(session: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        broken(patched, "a", out_of_memory)
        fails(env16, LakeError, "spark-failed.*MemoryError")
    with monkeypatch.context() as patched:  # all tables, and a file of nobody's too
        broken(patched, "", lambda session: session.sql("select raise_error('x')").collect())
        patched.setattr(task, "literal", lambda text: "a path that is none")
        fails(env16, EngineFailure, "ParserException")
    with monkeypatch.context() as patched:  # one table fails, and so does what every run needs
        broken(patched, "a", lambda session: session.sql("select raise_error('x')").collect())
        patched.setattr(merging, "record_cut", no_store)
        fails(env16, OSError, "the store is gone")

    assert set(env16.states().values()) == {("ready", None)}
    env16.merge()
    assert env16.unlike() == []


def no_store(*_: Any) -> None:
    raise OSError("the store is gone")


def fails(env: PipelineEnv, kind: type[Exception], match: str | None = None) -> None:
    attempt = env.plan()
    with pytest.raises(kind, match=match):
        env.submit(merge.job(env.ctx, attempt))


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
