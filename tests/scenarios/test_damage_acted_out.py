"""Pages of a full disk, damaged files, a clash of names and a wrong lake, acted out on servers that are really so.

As in `tests/flow/health/test_runbooks_acted_out.py`, what a page says is typed, and nothing else; Spark is submitted by the
commands themselves. It is over when the page's commands say so and source and lake are equal.
"""

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.errors import PenstockError
from penstock.flow.capture import run as capture
from penstock.flow.context import Context
from penstock.flow.health import alarms
from penstock.flow.verify.compare import compare
from penstock.flow.verify.run import verify_now
from stack import ports
from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.conftest import HASTY, LakeCatalog, NewServer
from tests.flow.health.conftest import KEEP, Watched
from tests.flow.health.oncall import OnCall, Step
from tests.pipeline_env import PipelineEnv

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

MB = 1 << 20
TASK = "shop.capture.windows"
_numbers = itertools.count(1)
Hire = Callable[..., tuple[Watched, OnCall]]


@pytest.fixture
def hire(
    postgres16: Server, lake: LakeCatalog, binaries16: Binaries, shell_with_spark: dict[str, str], tmp_path: Path
) -> Iterator[Hire]:
    """A function that makes a pipeline on a server, and puts a person in front of it whose shell has Spark."""
    home = tmp_path / "shell"
    home.mkdir()
    name = f"damaged{next(_numbers)}"  # a namespace of the lake, too
    with postgres16.temporary_database(f"{name}_ledger") as ledger:

        def hire(server: Server, **settings: Any) -> tuple[Watched, OnCall]:
            with server.connect() as connection:
                connection.execute(f"create database {name}".encode())
            env = PipelineEnv(Database(server, name), ledger, tmp_path / "landing", name, lake, settings=settings)
            return Watched(env), OnCall(env, home, binaries16, shell_with_spark)

        yield hire


@pytest.fixture
def own(new_server: NewServer, binaries16: Binaries) -> Iterator[Server]:
    """A server of the test's own, to be damaged."""
    server = new_server(binaries16, {**HASTY, **KEEP})
    yield server
    server.stop()


def penstock(oncall: OnCall, verb: str) -> str:
    return oncall.type(Step(f"penstock {verb} <pipeline>"), {})


def refused(oncall: OnCall, verb: str, slug: str) -> None:
    """Type a command, and see it end with an error of this name."""
    with pytest.raises(AssertionError, match=rf"\[{slug}\]"):
        penstock(oncall, verb)


def paged(watched: Watched, slug: str, work: Callable[[Context], object]) -> None:
    """Do a task's work, see it fail with an error that pages, and page as the task does."""
    with pytest.raises(PenstockError, match=rf"^\[{slug}\]") as caught:
        work(watched.env.ctx)
    alarms.page(watched.env.ctx, caught.value, TASK, watched.deliver)
    assert watched.open_alarms()[slug] == "critical"
    assert f"docs/runbooks/{slug}.md" in watched.delivered[-1].text()


def fixed(watched: Watched, slug: str) -> None:
    """End the alarm as the task does when it succeeds."""
    alarms.task_succeeded(watched.env.ctx, TASK, watched.deliver)
    assert slug not in watched.open_alarms()


# --- source-disk-full --------------------------------------------------------------------------------


@pytest.fixture
def small_disk(servers_home: Path) -> Iterator[Path]:
    """A file system of 640 MB; mounting one takes root."""
    place = servers_home / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=640m", "none", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("expected to be allowed to mount a small file system; run as root")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def cramped(small_disk: Path, binaries16: Binaries) -> Iterator[Server]:
    """A server with all of its files on the small file system."""
    home = small_disk / "server"
    settings = {**HASTY, **KEEP, "max_wal_size": "64MB", "max_slot_wal_keep_size": "-1", "max_replication_slots": "8"}
    server = Server(home, binaries16, ports.choose(), "only-for-tests", settings)
    server.start()
    yield server
    server.remove()


def test_a_full_disk_has_room_again_when_the_slot_that_filled_it_is_gone(
    small_disk: Path, cramped: Server, hire: Hire
) -> None:
    watched, oncall = hire(cramped, capture={"work_mem": "64KiB"})
    watched.env.sql("create table t (id int primary key, note text); insert into t values (1, 'one')")
    penstock(oncall, "bootstrap")
    forgotten = watched.foreign("forgotten")
    while shutil.disk_usage(small_disk).free > 230 * MB:  # what follows writes a table, its WAL, and then the spill
        watched.env.sql("select pg_logical_emit_message(true, 'idle', ''); select pg_switch_wal()")  # 16 MB each
    watched.env.sql("checkpoint")
    penstock(oncall, "capture")
    watched.env.flush("insert into t select n, repeat(md5(n::text), 60) from generate_series(2, 42000) n")

    paged(watched, "source-disk-full", capture.capture)
    refused(oncall, "capture", "source-disk-full")
    shown = oncall.confirm("source-disk-full")
    retained = re.search(rf"{forgotten} +\| f +\| (\d+) MB", shown)
    assert retained is not None, shown
    assert int(retained[1]) > 150
    before = shutil.disk_usage(small_disk).free

    oncall.do("slot-abandoned", "pg_drop_replication_slot", slot=forgotten)  # the page leads there
    oncall.do("source-disk-full", "checkpoint")

    assert shutil.disk_usage(small_disk).free > before + 100 * MB
    assert "changes 41999" in oncall.do("source-disk-full", "penstock capture")
    fixed(watched, "source-disk-full")
    penstock(oncall, "merge")
    assert "rows 42000, equal 1, differs 0" in penstock(oncall, "verify --now")


# --- source-corrupt ----------------------------------------------------------------------------------


def overwrite(server: Server, file: Path, at: int, count: int) -> None:
    """Overwrite bytes of a file while the server is down, as a failing disk does."""
    server.stop()
    with (server.data / file).open("r+b") as damaged:
        damaged.seek(at)
        damaged.write(b"\xa5" * count)
    server.start()


def test_a_table_with_a_damaged_page_is_left_out_and_all_others_continue(own: Server, hire: Hire) -> None:
    watched, oncall = hire(own)
    watched.env.sql(
        "create table good (id int primary key, name text); insert into good select n, 'g' || n from generate_series(1, 50) n;"
        "create table bad (id int primary key, name text); insert into bad select n, 'b' || n from generate_series(1, 50) n"
    )
    penstock(oncall, "bootstrap")
    watched.env.sql("insert into good values (51, 'before')")
    watched.env.sql("checkpoint")
    ((path,),) = watched.env.sql("select pg_relation_filepath('bad')")
    overwrite(own, Path(path), 4096, 1000)

    paged(watched, "source-corrupt", verify_now)
    ((name, trouble),) = ((each.qualified, each.trouble) for each in compare(watched.env.ctx).tables if each.trouble)
    assert (name, trouble.slug) == ("public.bad", "source-corrupt"), "the other table was compared"
    assert f"invalid page in block 0 of relation {path}" in watched.delivered[-1].text()
    refused(oncall, "verify --now", "source-corrupt")
    shown = oncall.confirm("source-corrupt", file=path.rsplit("/", 1)[1])
    assert re.search(rf"{watched.env.source.name} +\| +[1-9]", shown), "checksum failures of the database"
    assert re.search(r"^ bad$", shown, flags=re.MULTILINE)

    watched.env.settings["tables"] = {"include": ["public.*"], "exclude": ["public.bad"]}
    oncall.do("source-corrupt", "penstock capture")
    penstock(oncall, "merge")

    assert "rows 51, equal 1, differs 0" in penstock(oncall, "verify --now")
    fixed(watched, "source-corrupt")
    watched.env.flush("update good set name = 'after' where id < 10")
    penstock(oncall, "capture")
    penstock(oncall, "merge")
    assert watched.env.unlike() == []
    assert watched.slots() == {watched.slot}, "the one slot continues"


def test_a_server_with_damaged_wal_is_left_for_its_standby_and_everything_is_recovered(
    own: Server, hire: Hire, servers_home: Path
) -> None:
    watched, oncall = hire(own)
    env = watched.env
    env.sql(
        "create table t (id int primary key, name text); insert into t select n, 'n' || n from generate_series(1, 50) n"
    )
    home = servers_home / "sound"
    home.mkdir()
    own.account.own(home)
    own.run_program("pg_basebackup", "-D", home / "data", "-R", "-X", "stream", "--checkpoint=fast")
    standby = Server(home, own.binaries, ports.choose(), own.password, dict(own.settings))
    standby.start()
    try:
        penstock(oncall, "bootstrap")
        ((segment, offset),) = env.sql("select * from pg_walfile_name_offset(pg_current_wal_insert_lsn())")
        env.flush("update t set name = repeat('damaged', 20) where id <= 20; delete from t where id > 40")
        caught_up(own, standby)
        overwrite(own, Path("pg_wal") / segment, offset + 600, 400)

        paged(watched, "source-corrupt", capture.capture)
        assert re.search(r" at [0-9A-F]+/[0-9A-F]+|in WAL segment", watched.delivered[-1].alarm.message)
        refused(oncall, "capture", "source-corrupt")
        assert re.search(r"\(0 rows\)", oncall.confirm("source-corrupt", file="1")), "no table's file is damaged"

        with standby.connect() as admin:
            admin.execute("select pg_promote()")
        own.stop("immediate")
        env.source = Database(standby, env.source.name)
        refused(oncall, "capture", "source-changed")
        assert "lost to the stream" in oncall.do("source-changed", "penstock recover")
        oncall.do("source-changed", "penstock recover", "--no-dry-run")

        assert "rows 40, equal 1, differs 0" in penstock(oncall, "verify --now")
        fixed(watched, "source-corrupt")
        env.flush("insert into t values (100, 'on the standby that was')")
        penstock(oncall, "capture")
        penstock(oncall, "merge")
        assert "rows 41, equal 1, differs 0" in penstock(oncall, "verify --now")
    finally:
        standby.remove()


def caught_up(primary: Server, standby: Server) -> None:
    """Wait until the standby has replayed all that its primary has flushed."""
    with primary.connect() as admin:
        ((flushed,),) = admin.execute("select pg_current_wal_flush_lsn()::text").fetchall()
    with standby.connect() as admin:
        for _ in range(1200):
            ((there,),) = admin.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", (flushed,)).fetchall()
            if there:
                return
            admin.execute("select pg_sleep(0.1)")
    raise AssertionError("the standby never caught up")


# --- target-clash ------------------------------------------------------------------------------------


def test_two_tables_of_one_target_are_refused_before_a_bootstrap_and_while_it_runs(own: Server, hire: Hire) -> None:
    watched, oncall = hire(own, lake={"target": "{namespace}.{table}"}, tables={"include": ["a.*", "b.*"]})
    env = watched.env
    env.sql(
        "create schema a; create table a.t (id int primary key, name text); insert into a.t values (1, 'of a');"
        "create schema b; create table b.t (id int primary key, name text); insert into b.t values (1, 'of b'), (2, 'too')"
    )
    refused(oncall, "bootstrap", "target-clash")
    assert "got a.t, b.t" in oncall.do("target-clash", "penstock check")
    assert env.sql("select count(*) from pg_replication_slots") == [(0,)]
    assert env.sql("select count(*) from pg_publication") == [(0,)]

    env.settings["lake"] = {"target": "{namespace}.{schema}.{table}"}
    oncall.do("target-clash", "penstock check")
    penstock(oncall, "bootstrap")
    assert "rows 3, equal 2, differs 0" in penstock(oncall, "verify --now")

    env.sql('create table b."x.y" (id int primary key); create table b.x_y (id int primary key)')
    env.flush('insert into b."x.y" values (1), (2); insert into b.x_y values (1), (2), (3); insert into a.t values (7)')
    penstock(oncall, "capture")
    env.flush("insert into a.t values (8); insert into b.x_y values (4)")
    assert "changes 2" in penstock(oncall, "capture"), "it continues"
    assert re.search(r"b\.(x\.y|x_y) joined: expected every table .* to have a target", oncall.confirm("target-clash"))

    env.settings["tables"] = {"include": ["a.*", "b.*"], "exclude": ['b."x.y"']}
    oncall.do("target-clash", "penstock check")
    penstock(oncall, "capture")
    penstock(oncall, "capture")
    penstock(oncall, "resync --new --no-dry-run")
    penstock(oncall, "merge")

    assert "rows 9, equal 3, differs 0" in penstock(oncall, "verify --now")


# --- verify-differs ----------------------------------------------------------------------------------


def test_a_row_that_is_wrong_in_the_lake_is_named_without_its_value_and_copied_again(
    own: Server, hire: Hire, lake: LakeCatalog
) -> None:
    watched, oncall = hire(own)
    env = watched.env
    env.sql(
        "create table t (id int primary key, name text); insert into t select n, 'value' || n from generate_series(1, 50) n"
    )
    env.sql("create table other (id int primary key); insert into other values (1)")
    penstock(oncall, "bootstrap")
    assert "rows 50, equal 1, differs 0" in oncall.confirm("verify-differs", schema="public", table="t")
    (file,) = (lake.warehouse / env.name).glob("**/t-*/data/*.parquet")
    rows = pq.read_table(file)
    wrong = pc.if_else(pc.equal(rows["id"], 7), pa.scalar("wr0ng"), rows["name"])
    pq.write_table(rows.set_column(rows.schema.get_field_index("name"), rows.schema.field("name"), wrong), file)

    said = oncall.confirm("verify-differs", schema="public", table="t")
    assert "[verify-differs]" in said
    assert "public.t: differs, 50 rows in the source, 50 in the lake" in said
    assert "1 different" in said
    assert not re.search("wr0ng|value7", said)

    oncall.do("verify-differs", "penstock resync", schema="public", table="t")

    assert "rows 50, equal 1, differs 0" in oncall.confirm("verify-differs", schema="public", table="t")
