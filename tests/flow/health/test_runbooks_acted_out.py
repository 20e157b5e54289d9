"""Each alarm provoked on a real server, and ended by doing what its page says and nothing else.

A test has the name of its alarm, and the index of the runbooks lists which have one. Slow: commands are typed, and some alarms take a minute.
"""

import re
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from penstock.config.connections import Connection
from penstock.errors import SourceError
from penstock.flow.capture import run as capture
from penstock.flow.guards import record_errors
from penstock.flow.health import alarms
from penstock.source import session
from stack.servers.binaries import Binaries
from stack.servers.postgres import Server
from tests.flow.health.conftest import NewWatched, Watched
from tests.flow.health.oncall import OnCall
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

Hire = Callable[[Watched], OnCall]


@pytest.fixture
def hire(tmp_path: Path, binaries16: Binaries) -> Hire:
    """A function that puts a person in front of a pipeline."""
    home = tmp_path / "shell"
    home.mkdir()
    return lambda watched: OnCall(watched.env, home, binaries16)


@pytest.fixture
def oncall(watched: Watched, hire: Hire) -> OnCall:
    return hire(watched)


def until(watched: Watched, slug: str, *, gone: bool = False, patience: float = 180) -> None:
    """Check again and again, until an alarm is open, or is not any more."""

    def as_wanted() -> bool:
        watched.check()
        return (slug in watched.open_alarms()) != gone

    wait_until(as_wanted, f"{slug} is {'no longer' if gone else ''} open", seconds=patience, pause=0.5)


def captured(watched: Watched, oncall: OnCall, slug: str, alarm: str) -> None:
    """Capture as a page says, as often as it takes; the server frees WAL up to its last note of what runs."""
    for _ in range(20):
        oncall.do(slug, "penstock capture")
        watched.check()
        if alarm not in watched.open_alarms():
            return
        watched.env.sql("checkpoint")
    raise AssertionError(f"{alarm} stays open: {watched.open_alarms()}")


def test_slot_unread_and_slot_retained(watched: Watched, oncall: OnCall) -> None:
    watched.noise(20)
    watched.check()
    assert watched.open_alarms() == {"slot-retained": "warn", "slot-unread": "warn"}

    assert "slot-unread" in oncall.confirm("slot-unread")
    assert re.search(r"\b2\d MB", oncall.confirm("slot-retained"))
    captured(watched, oncall, "slot-unread", "slot-unread")
    captured(watched, oncall, "slot-unread", "slot-retained")

    assert watched.open_alarms() == {}


def test_transaction_open_long(watched: Watched, oncall: OnCall) -> None:
    watched.policy(watch={"transaction": 1})
    with watched.env.source.connect(autocommit=False, application_name="nightly") as writer:
        writer.execute("insert into t values (99, 'x')")
        until(watched, "transaction-open-long")

        shown = oncall.confirm("transaction-open-long")
        (pid,) = (line.split("|")[0].strip() for line in shown.splitlines() if "nightly" in line)
        oncall.do("transaction-open-long", "pg_terminate_backend", pid=pid)
        with pytest.raises(psycopg.OperationalError):
            writer.execute("select 1")

    until(watched, "transaction-open-long", gone=True)
    assert "transaction-open-long" not in watched.open_alarms()


def test_transaction_prepared_long(watched: Watched, oncall: OnCall) -> None:
    gid = f"forgotten_{watched.env.name}"
    watched.policy(watch={"transaction": 1})
    with watched.env.source.connect(autocommit=False) as writer:
        writer.execute("insert into t values (98, 'x')")
        writer.execute(f"prepare transaction '{gid}'".encode())
    until(watched, "transaction-prepared-long")

    assert gid in oncall.confirm("transaction-prepared-long")
    oncall.do("transaction-prepared-long", "rollback prepared", gid=gid)

    watched.check()
    assert "transaction-prepared-long" not in watched.open_alarms()


def test_slot_unreserved(own: Server, watched_on: NewWatched, hire: Hire) -> None:
    watched = watched_on(own)
    oncall = hire(watched)
    watched.noise(100)
    watched.check()
    assert watched.open_alarms()["slot-unreserved"] == "critical"

    assert "unreserved" in oncall.confirm("slot-unreserved")
    oncall.do("slot-unreserved", "max_slot_wal_keep_size")
    oncall.do("slot-unreserved", "pg_reload_conf")
    until(watched, "slot-unreserved", gone=True)
    watched.env.sql("checkpoint")
    watched.check()
    assert "slot-lost" not in watched.open_alarms(), "the checkpoint has come, and taken nothing"
    oncall.do("slot-unreserved", "penstock capture")

    watched.check()
    assert not {"slot-unreserved", "slot-lost", "slot-unread"} & set(watched.open_alarms())


def test_slot_orphaned(watched: Watched, oncall: OnCall) -> None:
    watched.without_tables()
    watched.check()
    assert watched.open_alarms() == {"slot-orphaned": "critical"}

    assert watched.slot in oncall.confirm("slot-orphaned")
    oncall.do("slot-orphaned", "pg_drop_replication_slot")

    watched.check()
    assert watched.open_alarms() == {}
    with pytest.raises(SourceError, match="slot-missing"), record_errors(watched.env.ctx):  # nobody has ended it
        capture.capture(watched.env.ctx)
    watched.check()
    assert watched.open_alarms() == {"slot-missing": "critical", "pipeline-halted": "critical"}


def test_slot_abandoned(watched: Watched, oncall: OnCall) -> None:
    foreign = watched.foreign(f"reporting_{watched.env.name}")
    watched.policy(watch={"abandoned": 1})
    watched.noise(20)
    capture.capture(watched.env.ctx)
    until(watched, "slot-abandoned")

    assert foreign in oncall.confirm("slot-abandoned")
    oncall.do("slot-abandoned", "pg_drop_replication_slot", slot=foreign)

    watched.check()
    assert "slot-abandoned" not in watched.open_alarms()
    assert watched.slots() == {watched.slot}


def test_slots_nearly_full(own: Server, watched_on: NewWatched, hire: Hire) -> None:
    watched = watched_on(own)
    oncall = hire(watched)
    foreign = [watched.foreign(f"other{number}_{watched.env.name}") for number in range(2)]
    watched.check()
    assert watched.open_alarms()["slots-nearly-full"] == "warn"

    assert foreign[0] in oncall.confirm("slots-nearly-full")
    for name in foreign:
        oncall.do("slot-abandoned", "pg_drop_replication_slot", slot=name)  # the page leads there

    watched.check()
    assert "slots-nearly-full" not in watched.open_alarms()


def test_slot_stalled(watched: Watched, oncall: OnCall) -> None:
    watched.env.settings["capture"] = {"time_budget": 1}
    watched.policy(watch={"unchanged_schedules": 1})
    watched.env.sql("insert into t values (2, 'two')")
    watched.noise(1)
    until(watched, "slot-stalled")

    assert "slot-stalled" in oncall.confirm("slot-stalled")
    assert "window" in oncall.do("slot-stalled", "penstock capture")

    watched.check()
    assert "slot-stalled" not in watched.open_alarms()


def test_catalog_xmin_old(watched: Watched, oncall: OnCall) -> None:
    watched.policy(watch={"catalog_age": 50})
    watched.env.sql("create procedure burn() language plpgsql as "
                      "$$begin for n in 1..300 loop perform pg_current_xact_id(); commit; end loop; end$$")  # fmt: skip
    watched.env.sql("call burn()")
    watched.check()
    assert watched.open_alarms()["catalog-xmin-old"] == "critical", "four times the limit"

    assert watched.slot in oncall.confirm("catalog-xmin-old")
    watched.noise(1)
    captured(watched, oncall, "catalog-xmin-old", "catalog-xmin-old")

    assert "catalog-xmin-old" not in watched.open_alarms()


def test_decoding_spills(watched: Watched, oncall: OnCall) -> None:
    watched.env.settings["capture"] = {"work_mem": "64KiB"}
    watched.env.sql("insert into t select n, repeat('y', 1000) from generate_series(2, 90000) n")
    watched.noise(1)
    oncall.do("slot-stalled", "penstock capture")
    until(watched, "decoding-spills")
    assert watched.open_alarms()["decoding-spills"] == "warn"

    assert re.search(rf"{watched.slot} +\| [6-9]\d MB|{watched.slot} +\| 1\d\d MB", oncall.confirm("decoding-spills"))
    watched.env.settings["capture"] = {"work_mem": "256MiB"}
    oncall.do("decoding-spills", "pg_stat_reset_replication_slot")
    watched.env.sql("update t set note = note || 'z'")
    watched.noise(1)
    oncall.do("slot-stalled", "penstock capture")

    watched.check()
    assert "decoding-spills" not in watched.open_alarms()
    ((spilled, decoded),) = watched.env.sql(
        f"select spill_bytes, total_bytes from pg_stat_replication_slots where slot_name = '{watched.slot}'"
    )
    assert (spilled, decoded > 64 << 20) == (0, True), "as much was decoded again, and nothing of it spilled"


def test_capture_too_slow(watched: Watched, oncall: OnCall) -> None:
    watched.env.settings["capture"] = {"max_wal_bytes": "1MiB"}
    for _ in range(6):  # the source writes many windows' worth between two windows
        watched.noise(60)
        capture.capture_window(watched.env.ctx)
        watched.check()
    assert "capture-too-slow" in watched.open_alarms()

    watched.noise(1)  # the source continues: a queue that has not grown since the last look is not told
    assert "capture-too-slow" in oncall.confirm("capture-too-slow")
    watched.env.settings["capture"] = {"max_wal_bytes": "512MiB", "time_budget": 600}
    oncall.do("capture-too-slow", "penstock capture")

    watched.check()
    assert "capture-too-slow" not in watched.open_alarms()


def test_pipeline_halted(watched: Watched, oncall: OnCall) -> None:
    right = watched.env.source
    with right.server.temporary_database(f"wrong_{right.name}") as wrong:
        watched.env.source = wrong
        with pytest.raises(SourceError, match="source-changed") as caught:
            capture.capture(watched.env.ctx)
        watched.env.ctx.ledger.pipelines.halt(watched.env.name, slug=caught.value.slug, reason=caught.value.message)
        watched.env.source = right
    watched.check()
    assert watched.open_alarms()["pipeline-halted"] == "critical"

    assert "source-changed" in oncall.confirm("pipeline-halted")
    oncall.do("pipeline-halted", "penstock resume")

    watched.check()
    assert watched.open_alarms() == {}


def test_source_unreachable(own: Server, watched_on: NewWatched, hire: Hire) -> None:
    watched = watched_on(own)
    oncall = hire(watched)
    own.stop("immediate")
    with pytest.raises(SourceError):
        watched.check()
    assert watched.open_alarms() == {"source-unreachable": "critical"}
    with pytest.raises(AssertionError, match="no response"):
        oncall.confirm("source-unreachable")

    own.start()

    assert "accepting connections" in oncall.confirm("source-unreachable")
    oncall.do("source-unreachable", "penstock status")
    watched.check()
    assert watched.open_alarms() == {}


def test_decoding_limit(own: Server, watched_on: NewWatched, hire: Hire) -> None:
    watched = watched_on(own)
    oncall = hire(watched)
    role = "penstock_capture"
    watched.env.sql(f"create role {role} superuser login replication")
    watched.env.sql(f"alter role {role} set temp_file_limit = '1MB'")
    watched.env.sql("alter role postgres set temp_file_limit = '1MB'")
    watched.env.settings["capture"] = {"work_mem": "64KiB"}
    watched.env.sql("insert into t select n, repeat(md5(n::text), 200) from generate_series(2, 1000) n")
    watched.noise(1)
    with pytest.raises(SourceError, match="decoding-limit") as caught:
        capture.capture(watched.env.ctx)
    alarms.page(watched.env.ctx, caught.value, "shop.capture.windows", watched.deliver)
    assert watched.open_alarms() == {"decoding-limit": "critical"}

    assert "1MB" in oncall.confirm("decoding-limit")
    oncall.do("decoding-limit", "temp_file_limit")
    assert watched.env.sql(f"select setconfig from pg_db_role_setting where setrole = '{role}'::regrole") == [
        (["temp_file_limit=-1"],)
    ]
    watched.env.sql("alter role postgres set temp_file_limit = '-1'")  # the tests' own reader

    assert capture.capture(watched.env.ctx).changes == 999
    alarms.task_succeeded(watched.env.ctx, "shop.capture.windows", watched.deliver)
    assert watched.open_alarms() == {}


def test_source_auth(watched: Watched, oncall: OnCall) -> None:
    role, source = "penstock_reader", watched.env.source
    watched.env.sql(
        "create schema sales; create table sales.orders (id int primary key); insert into sales.orders values (1);"
        f"create role {role} nologin password 'of the role'; create role penstock_capture nologin;"
        f"alter publication {watched.env.ctx.pipeline.publication} add table sales.orders"
    )
    reader = Connection("source", "127.0.0.1", source.server.port, role, "of the role", source.name)
    try:
        with pytest.raises(SourceError) as caught:
            session.connect(reader, what="test")
        assert caught.value.slug == "source-auth"
        alarms.page(watched.env.ctx, caught.value, "shop.capture.windows", watched.deliver)
        assert watched.open_alarms() == {"source-auth": "critical"}

        shown = oncall.confirm("source-auth", role=role)
        assert re.search(rf"{role} +\| f +\| f", shown)
        assert re.search(r"sales\.orders +\| f", shown)
        oncall.do("source-auth", "login replication")

        with session.connect(reader, what="test") as conn:
            assert conn.execute("select id from sales.orders").fetchall() == [(1,)]
        alarms.task_succeeded(watched.env.ctx, "shop.capture.windows", watched.deliver)
        assert watched.open_alarms() == {}
    finally:
        watched.env.sql(f"drop owned by {role}; drop role {role}, penstock_capture")


def test_standby_feedback_off(pair: tuple[Watched, Server], hire: Hire) -> None:
    watched, standby = pair
    primary = watched.env.source
    on_standby = type(primary)(standby, primary.name)
    oncall = hire(watched)
    watched.env.source = on_standby
    watched.check()
    assert watched.open_alarms()["standby-feedback-off"] == "critical"

    assert re.search(r"t +\| off", oncall.confirm("standby-feedback-off"))
    watched.env.source = primary
    oncall.do("standby-feedback-off", "pg_create_physical_replication_slot")
    watched.env.source = on_standby
    oncall.do("standby-feedback-off", "alter system set")
    oncall.do("standby-feedback-off", "pg_reload_conf")

    until(watched, "standby-feedback-off", gone=True)
    watched.env.source = primary
    until_active(watched)
    assert "standby-feedback-off" not in watched.open_alarms()


def until_active(watched: Watched) -> None:
    """Wait until the standby holds its slot and its feedback has arrived."""
    ask = "select active and xmin is not null from pg_replication_slots where slot_name = 'standby_of_penstock'"
    wait_until(lambda: watched.env.sql(ask) == [(True,)], "the primary hears of the standby's needs", pause=0.5)
