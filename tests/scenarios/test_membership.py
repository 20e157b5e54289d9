"""Tables join a running pipeline and leave it, by each of the ways there are; capture and the other tables continue."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from penstock.connections import Connection
from penstock.errors import SourceError
from penstock.flow import check as preflight
from penstock.flow import status as status_flow
from penstock.flow.capture import run as capture
from penstock.flow.copy import added_tables, bootstrap
from penstock.flow.copy.added_tables import wait_for_open_transactions
from tests.faults.killed import copy_without_spark
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, copy_waiting, members, states, told
from tests.scenarios.recovery import flush


def adopt(world: PipelineEnv, publication: str) -> None:
    """Let the owner make the publication, which Penstock takes over."""
    name = world.ctx.pipeline.publication
    world.settings["source"] = {**world.settings["source"], "adopt": True}
    world.sql(f"create publication {name} {publication}")


def patterns(world: PipelineEnv, *include: str, exclude: tuple[str, ...] = (), **policies: str) -> None:
    """Edit the pipeline file."""
    world.settings["tables"] = {"include": list(include), "exclude": list(exclude), **policies}


# --- joining ---------------------------------------------------------------------------------------------------------


def test_a_new_table_that_matches_joins_at_the_next_capture_and_its_changes_are_landed_from_then(
    bare: PipelineEnv,
) -> None:
    begin(bare)
    bare.sql('create table "New Table" (id int primary key, note text); insert into "New Table" values (1, \'early\')')
    bare.capture()
    assert states(bare) == {"t": "copied", "New Table": "waiting"}
    assert members(bare) == {"t", "New Table"}

    bare.sql("insert into \"New Table\" values (2, 'late'); update \"New Table\" set note = 'changed' where id = 1")
    flush(bare)
    assert bare.capture().changes == 2
    assert copy_waiting(bare) == ["New Table"]
    bare.sql('delete from "New Table" where id = 2')
    flush(bare)
    bare.capture()

    assert landed(bare, "New Table", "id") == at_source(bare, "New Table", "id") == {"1": ("1", "changed")}
    assert told(bare, "table-added") == [
        f"public.New Table joined publication {bare.ctx.pipeline.publication}; it waits for its copy"
    ]


def test_a_pattern_added_to_the_file_lets_a_table_join_and_one_taken_away_lets_it_leave(bare: PipelineEnv) -> None:
    patterns(bare, "public.t")
    begin(bare, "create table t (id int primary key); create schema s; create table s.u (id int primary key)")
    bare.capture()
    assert members(bare) == {"t"}

    patterns(bare, "public.t", "s.*")
    bare.capture()
    assert (members(bare), states(bare)) == ({"t", "u"}, {"t": "copied", "u": "waiting"})

    patterns(bare, "public.t")
    bare.capture()
    assert (members(bare), states(bare)) == ({"t"}, {"t": "copied", "u": "dropped"})
    (message,) = told(bare, "table-removed")
    assert message.startswith("s.u left publication")

    patterns(bare, "public.t", "s.*")
    bare.capture()
    assert states(bare) == {"t": "copied", "u": "waiting"}, "it came back"


def test_a_pattern_that_matches_nothing_takes_no_table_out(bare: PipelineEnv) -> None:
    patterns(bare, "public.t", "public.u")
    begin(bare, "create table t (id int primary key); create table u (id int primary key)")

    patterns(bare, "pubic.*")
    for _ in range(2):
        bare.capture()
    assert members(bare) == {"t", "u"}
    (message,) = told(bare, "no-matching-tables")
    assert "got none for pubic.*" in message
    assert "until then these stay in the publication: public.t, public.u" in message


def test_a_table_that_would_refuse_the_applications_updates_is_not_added_until_it_has_an_identity(
    bare: PipelineEnv,
) -> None:
    begin(bare)
    bare.sql("create table keyless (id int); create table p (id int primary key, _Misfits text)")
    bare.sql("create unlogged table scratch (id int primary key); create view v as select 1 as one")
    for _ in range(2):
        bare.capture()

    assert members(bare) == {"t"}
    bare.sql("insert into keyless values (1); update keyless set id = 2; delete from keyless")
    (message,) = told(bare, "no-usable-identity")
    assert message.startswith(
        "public.keyless matches tables.include and is not published, because it has no primary key"
    )
    (message,) = told(bare, "target-clash")
    assert "keep the name of its column _misfits for themselves" in message
    findings = {(f.level, f.slug, f.subject) for f in preflight.check(bare.ctx)}
    assert ("warn", "no-usable-identity", "public.keyless") in findings

    bare.sql("alter table keyless replica identity full; alter table p drop _misfits")
    bare.capture()
    assert members(bare) == {"t", "keyless", "p"}
    assert states(bare) == {"t": "copied", "keyless": "waiting", "p": "waiting"}


def test_a_table_whose_target_another_one_has_is_not_merged_and_stops_nothing(bare: PipelineEnv) -> None:
    bare.settings["lake"] = {"target": "{namespace}.{table}"}
    begin(bare, "create table t (id int primary key); create schema s")
    patterns(bare, "*.t")
    bare.sql("create table s.t (id int primary key)")
    for _ in range(2):
        bare.capture()

    (message,) = told(bare, "target-clash")
    assert "s.t" in message
    bare.sql("insert into public.t values (7)")
    flush(bare)
    assert bare.capture().changes == 1
    assert [(table.schema, table.state) for table in bare.ctx.ledger.tables.all(bare.name)] == [("public", "copied")]
    assert [found.slug for found in preflight.check(bare.ctx) if found.level == "error"] == ["target-clash"]
    patterns(bare, "*.t", exclude=("s.t",))
    usual = {"preflight-failed", "alert-undelivered"}  # what was checked, and that no channel is set
    assert {found.slug for found in preflight.check(bare.ctx)} == {*usual, "publication-differs"}
    bare.capture()
    assert {found.slug for found in preflight.check(bare.ctx)} == usual, "it has left"


def test_a_table_that_cannot_be_locked_joins_later_and_capture_goes_on(bare: PipelineEnv) -> None:
    begin(bare)
    bare.sql("create table u (id int primary key); create table busy (id int primary key)")
    with bare.source.connect() as other:
        other.execute("begin; lock table busy in access exclusive mode")
        bare.sql("insert into t values (2)")
        flush(bare)
        assert bare.capture().changes == 1
        assert members(bare) == {"t", "u"}
        (message,) = told(bare, "publication-differs")
        assert "it lacks public.busy" in message
        assert "lock timeout" in message

    bare.capture()
    assert members(bare) == {"t", "u", "busy"}
    assert told(bare, "publication-differs")[1:] == [
        f"publication {bare.ctx.pipeline.publication} publishes what the patterns choose"
    ]


def test_a_role_that_does_not_own_a_table_says_once_what_its_owner_must_run(bare: PipelineEnv) -> None:
    begin(bare)
    role, name = f"reader_{bare.source.name}", bare.ctx.pipeline.publication
    bare.sql(f"create role {role} superuser login password 'of the role'; alter publication {name} owner to {role}")
    bare.sql(f"alter role {role} nosuperuser replication; grant select on all tables in schema public to {role}")
    found = bare.ctx.connections

    def connections(conn_id: str) -> Connection:
        known = found(conn_id)
        return replace(known, user=role, password="of the role") if conn_id == "penstock_source" else known

    try:
        bare.sql('create table "Their Own" (id int primary key)')
        for _ in range(2):
            capture.capture(replace(bare.ctx, connections=connections))
        assert members(bare) == {"t"}
        (message,) = told(bare, "publication-differs")
        assert "this role does not own every table" in message
        statement = message.rpartition("let its owner run: ")[2]
        assert statement == f'alter publication "{name}" add table only "public"."Their Own"'
        bare.sql(statement)
        capture.capture(replace(bare.ctx, connections=connections))
        assert states(bare) == {"t": "paused", "Their Own": "waiting"}
        assert "its owner is another" in told(bare, "publication-changed")[0]

        bare.sql(f"create table theirs (id int primary key); alter publication {name} owner to postgres")
        capture.capture(replace(bare.ctx, connections=connections))
        assert "this role does not own it" in told(bare, "publication-differs")[-1]
    finally:
        bare.sql(f"drop owned by {role}; drop role {role}")


def test_the_owner_of_an_adopted_publication_is_told_once_and_followed_in_what_he_does(bare: PipelineEnv) -> None:
    bare.sql("create table t (id int primary key)")
    adopt(bare, "for table only t")
    begin(bare, "select 1")
    bare.sql("create table u (id int primary key); create table w (id int primary key)")
    patterns(bare, "public.u", "public.w")
    for _ in range(2):
        bare.capture()

    assert members(bare) == {"t"}
    (message,) = told(bare, "publication-differs")
    assert "it was not made by Penstock" in message
    statements = message.rpartition("let its owner run: ")[2]
    bare.sql(statements)
    bare.capture()
    assert members(bare) == {"u", "w"}
    assert states(bare) == {"t": "dropped", "u": "waiting", "w": "waiting"}
    bare.capture()
    assert len(told(bare, "publication-differs")) == 2, "that it differs, and that it does no more"

    name = bare.ctx.pipeline.publication
    bare.sql(f"alter publication {name} drop table w")
    bare.capture()
    assert states(bare) == {"t": "dropped", "u": "waiting", "w": "dropped"}


@pytest.mark.parametrize("made", ["for all tables", "for tables in schema public"])
def test_a_publication_of_a_schema_or_of_all_tables_brings_every_new_table(bare: PipelineEnv, made: str) -> None:
    bare.sql("create table t (id int primary key)")
    adopt(bare, f"{made} with (publish_via_partition_root = true)")
    begin(bare, "select 1")
    bare.sql(
        "create table u (id int primary key); insert into u values (1);"
        "create table m (id int primary key) partition by range (id);"
        "create table m_1 partition of m for values from (0) to (9); insert into m values (2)"
    )
    flush(bare)
    assert bare.capture().changes == 2
    assert states(bare) == {"t": "copied", "u": "waiting", "m": "waiting"}
    bare.sql("create table m_2 partition of m for values from (9) to (20); insert into m values (10)")
    flush(bare)
    bare.capture()
    copy_waiting(bare)
    assert sorted(landed(bare, "m", "id")) == ["10", "2"]

    bare.sql("drop table m")
    bare.capture()
    assert states(bare) == {"t": "copied", "u": "copied", "m": "dropped"}


def test_a_partitioned_table_joins_as_one_and_takes_the_place_of_its_partition(bare: PipelineEnv) -> None:
    patterns(bare, "public.m_1")
    begin(
        bare,
        "create table m (id int primary key) partition by range (id);"
        "create table m_1 partition of m for values from (0) to (9); insert into m values (1)",
    )
    patterns(bare, "public.m", "public.m_1")
    bare.capture()
    assert states(bare) == {"m_1": "dropped", "m": "waiting"}
    bare.sql("insert into m values (2)")
    flush(bare)
    assert bare.capture().changes == 1
    copy_waiting(bare)
    assert landed(bare, "m", "id") == at_source(bare, "m", "id")


# --- which transactions a copy must see ------------------------------------------------------------------------------


def test_a_copy_waits_for_the_transactions_that_were_open_when_the_table_joined_and_is_exact(bare: PipelineEnv) -> None:
    begin(bare)
    bare.sql("create table u (id int primary key, note text)")
    with bare.source.connect(application_name="the shop") as open_:
        open_.execute("begin; insert into u values (1, 'before it joined')")
        bare.capture()
        assert states(bare)["u"] == "waiting"
        open_.execute("insert into u values (2, 'after')")

        with pytest.raises(SourceError, match=r"table-joining.*public\.u.*process \d+ \(the shop\)") as caught:
            wait_for_open_transactions(bare.ctx, bare.ctx.ledger.membership.waiting(bare.name), wait=0)
        assert caught.value.directive.value == "retry"

        done = threading.Timer(1.5, lambda: open_.execute("commit"))
        done.start()
        assert copy_waiting(bare) == ["u"]
        done.join()
    bare.sql("insert into u values (3, 'last')")
    flush(bare)
    bare.capture()

    assert sorted(landed(bare, "u", "id")) == ["1", "2", "3"]
    assert landed(bare, "u", "id") == at_source(bare, "u", "id")


def test_bootstrap_copies_no_table_that_joined_because_its_snapshot_may_be_too_old(bare16: PipelineEnv) -> None:
    world = bare16
    world.sql("create table t (id int primary key)")
    bootstrap.prepare(world.ctx)
    with pytest.raises(RuntimeError):
        bootstrap.copy(world.ctx, _fail)
    world.sql("create table u (id int primary key)")
    world.capture()
    assert states(world) == {"t": "copying", "u": "waiting"}

    bootstrap.copy(world.ctx, copy_without_spark)
    assert states(world) == {"t": "copied", "u": "waiting"}
    assert added_tables.tables_to_announce(world.ctx) == ["public.u"]


def _fail(job: object) -> None:
    raise RuntimeError("for this test")


# --- the bell --------------------------------------------------------------------------------------------------------


def test_the_bell_rings_once_for_a_table_that_waits_and_not_where_a_person_decides(bare16: PipelineEnv) -> None:
    begin(bare16)
    bare16.sql("create table u (id int primary key)")
    bare16.capture()

    patterns(bare16, "public.*", on_added="wait")
    assert added_tables.tables_to_announce(bare16.ctx) == []
    patterns(bare16, "public.*", on_added="copy")
    assert added_tables.tables_to_announce(bare16.ctx) == ["public.u"]
    assert added_tables.tables_to_announce(bare16.ctx) == [], "somebody is awake already"
    bare16.sql("create table w (id int primary key)")
    bare16.capture()
    assert added_tables.tables_to_announce(bare16.ctx) == ["public.w"]
    bare16.ledger.execute("update penstock.table set rung_at = rung_at - interval '1 hour'")
    assert added_tables.tables_to_announce(bare16.ctx) == ["public.u", "public.w"], "nobody came"

    copy_waiting(bare16)
    assert added_tables.tables_to_announce(bare16.ctx) == []


def test_the_status_names_the_tables_that_wait(bare16: PipelineEnv) -> None:
    begin(bare16)
    bare16.sql("create table u (id int primary key)")
    bare16.capture()

    lines = dict(status_flow.lines(status_flow.status(bare16.ctx)))
    (record,) = bare16.ctx.ledger.membership.waiting(bare16.name)
    assert lines["waiting public.u"] == f"for its copy, since {record.joined_lsn}"


# --- leaving ---------------------------------------------------------------------------------------------------------


def test_a_table_that_is_dropped_leaves_and_its_namesake_joins_as_another_table(bare: PipelineEnv) -> None:
    begin(bare)
    (old,) = bare.ctx.ledger.tables.all(bare.name)
    bare.sql("drop table t; create table t (id int primary key, name text)")
    bare.capture()

    found = {table.oid: table.state for table in bare.ctx.ledger.tables.all(bare.name)}
    assert found.pop(old.oid) == "dropped"
    assert list(found.values()) == ["new"]
    assert told(bare, "table-removed")[0].startswith("public.t was dropped at the source; it is merged through")

    bare.sql("insert into t values (5, 'five')")
    flush(bare)
    bare.capture()
    copy_waiting(bare)
    (now,) = (table for table in bare.ctx.ledger.tables.all(bare.name) if table.oid != old.oid)
    assert now.state == "copied"


def test_a_table_that_left_and_came_back_between_two_captures_needs_a_copy_for_what_it_missed(
    bare: PipelineEnv,
) -> None:
    begin(bare)
    name = bare.ctx.pipeline.publication
    bare.capture()
    bare.sql(
        f"alter publication {name} drop table t; insert into t values (2); alter publication {name} add table only t"
    )
    bare.sql("insert into t values (3)")
    flush(bare)
    assert bare.capture().changes == 1, "2 is in no window"

    assert states(bare) == {"t": "paused"}
    assert added_tables.tables_to_announce(bare.ctx) == ["public.t"]
    (message,) = told(bare, "publication-changed")
    assert message.startswith(f"paused public.t: it was taken out of publication {name} and put back")


def test_a_paused_table_that_leaves_is_dropped(bare16: PipelineEnv) -> None:
    begin(bare16)
    (record,) = bare16.ctx.ledger.tables.all(bare16.name)
    bare16.ctx.ledger.tables.pause(bare16.name, record.oid, slug="divergence", reason="for this test")
    bare16.sql("drop table t; create table other (id int primary key)")
    bare16.capture()
    assert states(bare16) == {"t": "dropped", "other": "waiting"}
