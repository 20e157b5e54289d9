"""Tables join a running pipeline and leave it, by each of the ways there are; capture and the other tables continue."""

import re
import threading
from typing import Any

import pytest

from penstock.errors import Trouble
from penstock.flow import check as preflight
from penstock.flow import status as status_flow
from penstock.flow.capture import run as capture
from penstock.flow.health import run as health
from penstock.flow.load import bootstrap, waiting
from penstock.flow.load.waiting import hindered
from penstock.flow.merge import run as merge
from penstock.source import publication
from tests.faults.oracle import at_source, landed
from tests.pipeline_env import PipelineEnv, copy_without_spark
from tests.scenarios.members import adopt, begin, copy_waiting, members, messages, states


def patterns(env: PipelineEnv, *include: str, exclude: tuple[str, ...] = (), **policies: str) -> None:
    """Edit the pipeline file."""
    env.settings["tables"] = {"include": list(include), "exclude": list(exclude), **policies}


# --- joining ---------------------------------------------------------------------------------------------------------


def test_a_new_table_that_matches_joins_at_the_next_capture_and_its_changes_are_landed_from_then(
    env: PipelineEnv,
) -> None:
    begin(env)
    env.land('create table "New Table" (id int primary key, note text); insert into "New Table" values (1, \'early\')')
    assert states(env) == {"t": "copied", "New Table": "waiting"}
    assert members(env) == {"t", "New Table"}

    assert (
        env.land(
            "insert into \"New Table\" values (2, 'late'); update \"New Table\" set note = 'changed' where id = 1"
        ).changes
        == 2
    )
    assert copy_waiting(env) == ["New Table"]
    env.land('delete from "New Table" where id = 2')

    assert landed(env, "New Table", "id") == at_source(env, "New Table", "id") == {"1": ("1", "changed")}
    assert messages(env, "table-added") == [
        f"public.New Table joined publication {env.ctx.pipeline.publication}; it waits for its copy"
    ]


def test_a_pattern_added_to_the_file_lets_a_table_join_and_one_taken_away_lets_it_leave(env: PipelineEnv) -> None:
    patterns(env, "public.t")
    begin(env, "create table t (id int primary key); create schema s; create table s.u (id int primary key)")
    env.capture()
    assert members(env) == {"t"}

    patterns(env, "public.t", "s.*")
    env.capture()
    assert (members(env), states(env)) == ({"t", "u"}, {"t": "copied", "u": "waiting"})

    patterns(env, "public.t")
    env.capture()
    assert (members(env), states(env)) == ({"t"}, {"t": "copied", "u": "dropped"})
    (message,) = messages(env, "table-removed")
    assert message.startswith("s.u left publication")

    patterns(env, "public.t", "s.*")
    env.capture()
    assert states(env) == {"t": "copied", "u": "waiting"}, "it came back"


def test_a_pattern_that_matches_nothing_takes_no_table_out(env: PipelineEnv) -> None:
    patterns(env, "public.t", "public.u")
    begin(env, "create table t (id int primary key); create table u (id int primary key)")

    patterns(env, "pubic.*")
    for _ in range(2):
        env.capture()
    assert members(env) == {"t", "u"}
    (message,) = messages(env, "no-matching-tables")
    assert "got none for pubic.*" in message
    assert "until then these stay in the publication: public.t, public.u" in message


def test_a_table_that_would_refuse_the_applications_updates_is_not_added_until_it_has_an_identity(
    env: PipelineEnv,
) -> None:
    begin(env)
    env.sql("create table keyless (id int); create table p (id int primary key, _Misfits text)")
    env.sql("create unlogged table scratch (id int primary key); create view v as select 1 as one")
    for _ in range(2):
        env.capture()

    assert members(env) == {"t"}
    env.sql("insert into keyless values (1); update keyless set id = 2; delete from keyless")
    (message,) = messages(env, "no-usable-identity")
    assert message.startswith(
        "public.keyless matches tables.include and is not published, because it has no primary key"
    )
    (message,) = messages(env, "target-clash")
    assert "keep the name of its column _misfits for themselves" in message
    findings = {(f.level, f.slug, f.subject) for f in preflight.check(env.ctx)}
    assert ("warn", "no-usable-identity", "public.keyless") in findings

    env.land("alter table keyless replica identity full; alter table p drop _misfits")
    assert members(env) == {"t", "keyless", "p"}
    assert states(env) == {"t": "copied", "keyless": "waiting", "p": "waiting"}


def test_a_pipeline_for_all_tables_begins_on_an_empty_database_and_takes_each_as_it_is_made(env: PipelineEnv) -> None:
    patterns(env, "*.*")
    found = preflight.check(env.ctx)
    assert preflight.failures(found) == []
    assert ("warn", "no-matching-tables") in {(each.level, each.slug) for each in found}

    begin(env, "select")
    assert env.ctx.ledger.pipelines.get(env.name).state == "running"
    assert env.capture().changes == 0
    assert merge.plan(env.ctx) is None
    assert not {"slot-orphaned", "slot-missing"} & {each.slug for each in health.judge_pipeline(env.ctx).findings}

    env.land("create table first (id int primary key); insert into first values (1)")
    assert (members(env), states(env)) == ({"first"}, {"first": "waiting"})
    assert copy_waiting(env) == ["first"]
    assert env.land("insert into first values (2)").changes == 1
    assert landed(env, "first", "id") == at_source(env, "first", "id") == {"1": ("1",), "2": ("2",)}


def test_a_table_that_loses_its_identity_as_it_joins_is_left_out_and_its_updates_go_on(
    env16: PipelineEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(env16)
    env16.sql("create table late (id int primary key)")
    add = publication.add

    def altered_before(*given: Any) -> None:
        env16.sql("alter table late replica identity nothing")
        add(*given)

    monkeypatch.setattr(publication, "add", altered_before)
    env16.capture()

    assert members(env16) == {"t"}
    env16.sql("insert into late values (1); update late set id = 2; delete from late")
    (message,) = messages(env16, "no-usable-identity")
    assert "public.late: it has no primary key or identity index that counts" in message
    assert 'run: alter table "public"."late" replica identity default' in message
    monkeypatch.undo()
    env16.land('alter table "public"."late" replica identity default')
    assert members(env16) == {"t", "late"}


def test_a_table_whose_target_another_one_has_is_not_merged_and_stops_nothing(env: PipelineEnv) -> None:
    env.settings["lake"] = {"target": "{namespace}.{table}"}
    begin(env, "create table t (id int primary key); create schema s")
    patterns(env, "*.t")
    env.sql("create table s.t (id int primary key)")
    for _ in range(2):
        env.capture()

    (message,) = messages(env, "target-clash")
    assert "s.t" in message
    assert env.land("insert into public.t values (7)").changes == 1
    assert [(table.schema, table.state) for table in env.tables] == [("public", "copied")]
    assert [found.slug for found in preflight.check(env.ctx) if found.level == "error"] == ["target-clash"]
    patterns(env, "*.t", exclude=("s.t",))
    usual = {"preflight-failed", "alert-undelivered"}  # what was checked, and that no channel is set
    assert {found.slug for found in preflight.check(env.ctx)} == {*usual, "publication-differs"}
    env.capture()
    assert {found.slug for found in preflight.check(env.ctx)} == usual, "it has left"


def test_a_table_that_cannot_be_locked_joins_later_and_capture_continues(env: PipelineEnv) -> None:
    begin(env)
    env.sql("create table u (id int primary key); create table busy (id int primary key)")
    with env.source.connect() as other:
        other.execute("begin; lock table busy in access exclusive mode")
        assert env.land("insert into t values (2)").changes == 1
        assert members(env) == {"t", "u"}
        (message,) = messages(env, "publication-differs")
        assert "it lacks public.busy" in message
        assert "lock timeout" in message

    env.capture()
    assert members(env) == {"t", "u", "busy"}
    assert messages(env, "publication-differs")[1:] == [
        f"publication {env.ctx.pipeline.publication} publishes what the patterns choose"
    ]


def test_a_role_that_does_not_own_a_table_says_once_what_its_owner_must_run(env: PipelineEnv) -> None:
    begin(env)
    role, name = f"reader_{env.source.name}", env.ctx.pipeline.publication
    env.sql(f"create role {role} superuser login password 'of the role'; alter publication {name} owner to {role}")
    env.sql(f"alter role {role} nosuperuser replication; grant select on all tables in schema public to {role}")
    login = {"user": role, "password": "of the role"}
    try:
        env.sql('create table "Their Own" (id int primary key)')
        for _ in range(2):
            capture.capture(env.logged_in(**login))
        assert members(env) == {"t"}
        (message,) = messages(env, "publication-differs")
        assert "this role does not own every table" in message
        statement = message.rpartition("let its owner run: ")[2]
        assert statement == f'alter publication "{name}" add table only "public"."Their Own"'
        env.sql(statement)
        capture.capture(env.logged_in(**login))
        assert states(env) == {"t": "paused", "Their Own": "waiting"}
        assert "its owner is another" in messages(env, "publication-changed")[0]

        env.sql(f"create table theirs (id int primary key); alter publication {name} owner to postgres")
        capture.capture(env.logged_in(**login))
        assert "this role does not own it" in messages(env, "publication-differs")[-1]
    finally:
        env.sql(f"drop owned by {role}; drop role {role}")


def test_the_statement_for_an_adopted_publication_is_reported_once_and_its_owner_is_followed(env: PipelineEnv) -> None:
    env.sql("create table t (id int primary key)")
    adopt(env, "for table only t")
    begin(env, "select 1")
    env.sql("create table u (id int primary key); create table w (id int primary key)")
    patterns(env, "public.u", "public.w")
    for _ in range(2):
        env.capture()

    assert members(env) == {"t"}
    (message,) = messages(env, "publication-differs")
    assert "it was not made by Penstock" in message
    statements = message.rpartition("let its owner run: ")[2]
    env.land(statements)
    assert members(env) == {"u", "w"}
    assert states(env) == {"t": "dropped", "u": "waiting", "w": "waiting"}
    env.capture()
    assert len(messages(env, "publication-differs")) == 2, "that it differs, and that it does no more"

    name = env.ctx.pipeline.publication
    env.land(f"alter publication {name} drop table w")
    assert states(env) == {"t": "dropped", "u": "waiting", "w": "dropped"}


@pytest.mark.parametrize("made", ["for all tables", "for tables in schema public"])
def test_a_publication_of_a_schema_or_of_all_tables_brings_every_new_table(env: PipelineEnv, made: str) -> None:
    env.sql("create table t (id int primary key)")
    adopt(env, f"{made} with (publish_via_partition_root = true)")
    begin(env, "select 1")
    assert (
        env.land(
            "create table u (id int primary key); insert into u values (1);"
            "create table m (id int primary key) partition by range (id);"
            "create table m_1 partition of m for values from (0) to (9); insert into m values (2)"
        ).changes
        == 2
    )
    assert states(env) == {"t": "copied", "u": "waiting", "m": "waiting"}
    env.land("create table m_2 partition of m for values from (9) to (20); insert into m values (10)")
    copy_waiting(env)
    assert sorted(landed(env, "m", "id")) == ["10", "2"]

    env.land("drop table m")
    assert states(env) == {"t": "copied", "u": "copied", "m": "dropped"}


def test_a_partitioned_table_joins_as_one_and_takes_the_place_of_its_partition(env: PipelineEnv) -> None:
    patterns(env, "public.m_1")
    begin(
        env,
        "create table m (id int primary key) partition by range (id);"
        "create table m_1 partition of m for values from (0) to (9); insert into m values (1)",
    )
    patterns(env, "public.m", "public.m_1")
    env.capture()
    assert states(env) == {"m_1": "dropped", "m": "waiting"}
    assert env.land("insert into m values (2)").changes == 1
    copy_waiting(env)
    assert landed(env, "m", "id") == at_source(env, "m", "id")


# --- which transactions a copy must see ------------------------------------------------------------------------------


def test_a_copy_waits_for_the_transactions_that_were_open_when_the_table_joined_and_is_exact(env: PipelineEnv) -> None:
    begin(env)
    env.sql("create table u (id int primary key, note text)")
    with env.source.connect(application_name="the shop") as open_:
        open_.execute("begin; insert into u values (1, 'before it joined')")
        env.capture()
        assert states(env)["u"] == "waiting"
        open_.execute("insert into u values (2, 'after')")

        waiting_tables = [each for each in env.ctx.ledger.tables.all(env.name) if each.waits]
        (error,) = hindered(env.ctx, waiting_tables, wait=0).values()
        assert re.search(r"table-joining.*public\.u.*process \d+ \(the shop\)", str(error))
        assert error.directive.value == "retry"

        done = threading.Timer(1.5, lambda: open_.execute("commit"))
        done.start()
        assert copy_waiting(env) == ["u"]
        done.join()
    env.land("insert into u values (3, 'last')")

    assert sorted(landed(env, "u", "id")) == ["1", "2", "3"]
    assert landed(env, "u", "id") == at_source(env, "u", "id")


def test_bootstrap_copies_no_table_that_joined_because_its_snapshot_may_be_too_old(env16: PipelineEnv) -> None:
    env16.prepare("create table t (id int primary key)")
    with pytest.raises(RuntimeError):
        bootstrap.copy(env16.ctx, _fail)
    env16.land("create table u (id int primary key)")
    assert states(env16) == {"t": "copying", "u": "waiting"}

    bootstrap.copy(env16.ctx, copy_without_spark)
    assert states(env16) == {"t": "copied", "u": "waiting"}
    assert waiting.tables_to_announce(env16.ctx) == ["public.u"]


def _fail(job: object) -> None:
    raise RuntimeError("for this test")


# --- the bell --------------------------------------------------------------------------------------------------------


def test_a_table_that_waits_is_announced_once_and_not_where_a_person_decides(env16: PipelineEnv) -> None:
    begin(env16)
    env16.land("create table u (id int primary key)")

    patterns(env16, "public.*", on_added="wait")
    assert waiting.tables_to_announce(env16.ctx) == []
    patterns(env16, "public.*", on_added="copy")
    assert waiting.tables_to_announce(env16.ctx) == ["public.u"]
    assert waiting.tables_to_announce(env16.ctx) == [], "somebody is awake already"
    env16.land("create table w (id int primary key)")
    assert waiting.tables_to_announce(env16.ctx) == ["public.w"]
    env16.ledger.execute("update penstock.table set announced_at = announced_at - interval '1 hour'")
    assert waiting.tables_to_announce(env16.ctx) == ["public.u", "public.w"], "nobody came"

    copy_waiting(env16)
    assert waiting.tables_to_announce(env16.ctx) == []


def test_the_status_names_the_tables_that_wait(env16: PipelineEnv) -> None:
    begin(env16)
    env16.land("create table u (id int primary key)")

    lines = dict(status_flow.lines(status_flow.status(env16.ctx)))
    assert re.fullmatch(
        r"[\d.]+ (B|KiB|MiB) unread, [\d.]+ (B|KiB|MiB) of WAL retained, slot reserved", lines["source"]
    )
    (record,) = [each for each in env16.ctx.ledger.tables.all(env16.name) if each.waits]
    assert lines["waiting public.u"] == f"for its copy, since {record.joined_lsn}"


# --- leaving ---------------------------------------------------------------------------------------------------------


def test_a_table_that_is_dropped_leaves_and_its_namesake_joins_as_another_table(env: PipelineEnv) -> None:
    begin(env)
    (old,) = env.tables
    env.land("drop table t; create table t (id int primary key, name text)")

    found = {table.oid: table.state for table in env.tables}
    assert found.pop(old.oid) == "dropped"
    assert list(found.values()) == ["new"]
    assert messages(env, "table-removed")[0].startswith("public.t was dropped at the source; it is merged through")

    env.land("insert into t values (5, 'five')")
    copy_waiting(env)
    (now,) = (table for table in env.tables if table.oid != old.oid)
    assert now.state == "copied"


def test_a_table_that_left_and_came_back_between_two_captures_needs_a_copy_for_what_it_missed(env: PipelineEnv) -> None:
    begin(env)
    name = env.ctx.pipeline.publication
    env.capture()
    env.sql(
        f"alter publication {name} drop table t; insert into t values (2); alter publication {name} add table only t"
    )
    assert env.land("insert into t values (3)").changes == 1, "2 is in no window"

    assert states(env) == {"t": "paused"}
    assert waiting.tables_to_announce(env.ctx) == ["public.t"]
    (message,) = messages(env, "publication-changed")
    assert message.startswith(f"paused public.t: it was taken out of publication {name} and put back")


SHAPES = {
    "a type": "alter table u alter v type int using length(v), add w text default random()::text",
    "the key": "alter table u drop constraint u_pkey, add primary key (v)",
    "a column that went": "alter table u drop v, alter id type bigint",
    "a new file": "truncate u; insert into u values (7, 'after')",
    "a name": "alter table u rename to u2; alter table u2 rename v to v2",
    "membership": "alter publication {name} drop table u; insert into u values (9, 'apart'); alter publication {name} add table only u",
    "a partition": "create table p1 (id int not null, v text); insert into p1 values (5, 'had'); alter table p attach partition p1 for values from (0) to (10)",
}


@pytest.mark.parametrize("changed", SHAPES)
def test_a_table_that_waits_for_its_first_copy_waits_on_whatever_its_shape_becomes(
    env16: PipelineEnv, changed: str
) -> None:
    env16.settings["tables"] = {"include": ["public.*"], "on_change": "pause"}
    begin(env16)
    env16.sql("create table u (id int primary key, v text); insert into u values (1, 'early')")
    env16.land("create table p (id int primary key, v text) partition by range (id)")
    env16.land("insert into u values (2, 'landed')")

    env16.sql(SHAPES[changed].format(name=env16.ctx.pipeline.publication))
    env16.land("update p set v = 'p'; insert into p values (6, 'q')" if changed == "a partition" else "select 1")
    known = {record.name: record for record in env16.tables}
    named = "u2" if changed == "a name" else "u"
    assert states(env16) == {"t": "copied", named: "waiting", "p": "waiting"}
    at_server = "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum"
    names = [name for (name,) in env16.source.execute(at_server, named)]
    assert [column.name for column in known[named].columns] == names
    assert known[named].target[-1] == named

    assert copy_waiting(env16) == ["p", named]
    key = next(column.name for column in known[named].columns if column.key)
    assert landed(env16, named, key) == at_source(env16, named, key)
    assert landed(env16, "p", "id") == at_source(env16, "p", "id")


def test_a_paused_table_that_leaves_is_dropped(env16: PipelineEnv) -> None:
    begin(env16)
    (record,) = env16.tables
    env16.ctx.ledger.tables.stop(env16.name, {record.oid: Trouble.usual("divergence", "for this test")})
    env16.land("drop table t; create table other (id int primary key)")
    assert states(env16) == {"t": "dropped", "other": "waiting"}
