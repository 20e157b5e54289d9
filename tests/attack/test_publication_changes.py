"""What an altered publication has kept out of the stream is noticed, also where the alteration was undone."""

import psycopg
import pytest

from penstock.errors import LakeError, SourceError, Trouble
from penstock.flow.check import check
from penstock.flow.health.run import judge_pipeline
from penstock.flow.load import waiting
from penstock.flow.load.resync import to_copy
from penstock.flow.load.waiting import hindered
from penstock.flow.recover import resume
from penstock.flow.schema.publication import changed
from penstock.ledger.records import Publishing
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, messages, states
from tests.scenarios.recovery import SHOP, follows

TABLES = """
create table t (id int primary key, v int, s text);
create table u (id int primary key, v int);
create table root (id int primary key, v int) partition by range (id);
create table leaf partition of root for values from (0) to (100);
create table leaf2 partition of root for values from (100) to (200);
insert into t select n, n, n from generate_series(1, 9) n;
insert into root select n, n from generate_series(1, 9) n;
"""
ALL = {"t", "u", "root"}


def adopted(env: PipelineEnv, publication: str, tables: str = TABLES) -> str:
    """Let a pipeline adopt a publication that its owner has made; return its name."""
    name = env.ctx.pipeline.publication
    env.settings["source"] = {**env.settings["source"], "adopt": True}
    env.sql(f"{tables} create publication {name} {publication}")
    begin(env, "select")
    env.capture()
    return name


def own(env: PipelineEnv) -> str:
    """Begin with a publication that Penstock makes; return its name."""
    begin(env, TABLES)
    env.capture()
    assert set(states(env).values()) == {"copied"}
    return env.ctx.pipeline.publication


def paused(env: PipelineEnv) -> dict[str, str]:
    """Return the reasons of the tables that were paused, each by the one kind."""
    found = [table for table in env.tables if table.state == "paused"]
    assert {table.paused_slug for table in found} <= {"publication-changed"}
    return {table.name: table.paused_reason or "" for table in found}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (False, True, "it sends stored generated columns again, or for the first time"),
        (True, False, "it does not send stored generated columns any more"),
        (True, True, "it shows the options that it had"),
    ],
)
def test_an_alteration_of_what_is_sent_of_generated_columns_is_named(before: bool, after: bool, said: str) -> None:
    kinds = ("insert", "update", "delete", "truncate", "via_root")
    first, second = (Publishing(str(each), "owner", kinds, kinds, each) for each in (before, after))

    assert changed(first, second).startswith(said)


@pytest.mark.slow
def test_a_key_that_is_not_sent_any_more_is_named_as_such_and_the_table_is_copied_when_it_is_sent_again(
    env18: PipelineEnv,
) -> None:
    tables = """
    create table t (id int primary key, v int); insert into t values (1, 1);
    create table k (a int, id int generated always as (a + 1) stored primary key); insert into k values (1);
    """
    name = adopted(env18, "for table t, k with (publish_generated_columns = stored)", tables)
    assert set(states(env18).values()) == {"copied"}

    env18.land(f"alter publication {name} set (publish_generated_columns = none); insert into t values (2, 2)")

    found = {table.name: (table.paused_slug, table.paused_reason or "") for table in env18.tables}
    assert found["t"][0] == "publication-changed"
    assert "it does not send stored generated columns any more" in found["t"][1]
    assert found["k"][0] == "no-usable-identity"
    assert "(a generated one is not)" in found["k"][1]
    assert ("no-usable-identity", "public.k") in {
        (each.slug, each.subject) for each in judge_pipeline(env18.ctx).findings
    }
    with pytest.raises(psycopg.errors.InvalidColumnReference):
        env18.sql("update k set a = 5")

    env18.sql(f"alter publication {name} set (publish_generated_columns = stored)")
    env18.land("update k set a = 5")
    assert set(paused(env18)) == {"t", "k"}
    assert "no-usable-identity" not in {each.slug for each in judge_pipeline(env18.ctx).findings}


@pytest.mark.slow
def test_on_18_the_runbooks_command_turns_two_phase_off_and_resume_continues(env18: PipelineEnv) -> None:
    begin(env18, "create table t (id int primary key)")
    slot, name = env18.ctx.pipeline.slot, env18.ctx.pipeline.publication
    env18.sql(
        f"select count(*) from pg_logical_slot_peek_binary_changes('{slot}', null, null, 'proto_version', '3', "
        f"'publication_names', '{name}', 'two_phase', 'true')"
    )
    env18.flush("insert into t values (1)")
    with pytest.raises(SourceError, match=r"slot-unusable.*two_phase True"):
        env18.capture()
    env18.ctx.ledger.pipelines.halt(env18.name, slug="slot-unusable", reason="two_phase is on.")

    with psycopg.connect(env18.source.dsn(), autocommit=True, replication="database") as connection:
        connection.execute(f"ALTER_REPLICATION_SLOT {slot} (TWO_PHASE false)".encode())
    resume.resume(env18.ctx)

    assert env18.capture().changes == 1


def captured(env: PipelineEnv, statements: str) -> dict[str, str]:
    """Capture what these statements leave; return the reasons of the tables that were paused."""
    env.land(statements)
    return paused(env)


def alarms(env: PipelineEnv) -> dict[str, str]:
    """Return the levels of what slot health finds wrong with the publication."""
    return {each.slug: each.level for each in judge_pipeline(env.ctx).findings if each.slug == "publication-narrow"}


# --- the publication's own row -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("set (publish = 'insert')", "set (publish = 'insert, update, delete, truncate')"),
        ("set (publish_via_partition_root = false)", "set (publish_via_partition_root = true)"),
    ],
)
def test_options_changed_and_changed_back_between_two_captures_pause_every_table(
    env: PipelineEnv, there: str, back: str
) -> None:
    name = own(env)
    changes = "update t set v = -v where id < 3; delete from t where id > 7; update root set v = -v; truncate u"

    reasons = captured(env, f"alter publication {name} {there}; {changes}; alter publication {name} {back}")

    assert set(reasons) == ALL
    assert all("inserts, updates, deletes, truncates" in reason for reason in reasons.values())
    assert waiting.tables_to_announce(env.ctx) == ["public.root", "public.t", "public.u"]
    assert captured(env, "insert into t values (50)") == reasons
    assert len(messages(env, "publication-changed")) == 1, "one event, not one per capture or table"


def test_a_publication_narrowed_for_long_pauses_its_tables_until_it_is_whole_and_copies_nothing_meanwhile(
    env: PipelineEnv,
) -> None:
    name = own(env)
    assert alarms(env) == {}

    reasons = captured(env, f"alter publication {name} set (publish = 'insert, truncate'); delete from t where id = 1")
    assert set(reasons) == ALL
    assert "does not send updates, deletes any more" in reasons["t"]
    assert alarms(env) == {"publication-narrow": "critical"}
    assert waiting.tables_to_announce(env.ctx) == []
    assert to_copy(env.ctx, None) == []
    with pytest.raises(LakeError, match=r"publication-changed.*does not send updates, deletes"):
        resume.resume_table(env.ctx, "public.t")

    env.land("create table late (id int primary key)")
    assert states(env)["late"] == "waiting"
    assert waiting.tables_to_announce(env.ctx) == [], "nor is a table that joins, of which the lake would lack changes"

    reasons = captured(env, f"alter publication {name} set (publish = 'insert, update, delete, truncate')")
    assert set(reasons) == ALL
    assert states(env)["late"] == "waiting", "its first copy will see what was not sent"
    assert "it sends updates, deletes again" in reasons["t"]
    assert alarms(env) == {}
    assert len(waiting.tables_to_announce(env.ctx)) == 4
    resume.resume_table(env.ctx, "public.t")
    assert states(env)["t"] == "copied", "by a person who knows that nothing was written"


def test_a_partitioned_table_stays_while_its_changes_come_under_its_partitions_names(env: PipelineEnv) -> None:
    env.settings["tables"] = {"include": ["public.*"], "on_removed": "drop"}
    name = own(env)

    captured(env, f"alter publication {name} set (publish_via_partition_root = false); update root set v = -v")
    assert states(env) == dict.fromkeys(ALL, "paused"), "the root has not left, its partitions have not joined"
    assert alarms(env) == {"publication-narrow": "critical"}
    captured(
        env,
        "create table leaf3 partition of root for values from (200) to (300); insert into root values (250)",
    )
    assert states(env) == dict.fromkeys(ALL, "paused")
    assert waiting.tables_to_announce(env.ctx) == []

    captured(env, f"alter publication {name} set (publish_via_partition_root = true)")
    assert states(env) == dict.fromkeys(ALL, "paused")
    assert waiting.tables_to_announce(env.ctx) == ["public.root", "public.t", "public.u"]
    assert messages(env, "table-removed") == messages(env, "table-added") == []


def test_what_happens_between_the_bootstrap_and_the_first_capture_is_noticed(env16: PipelineEnv) -> None:
    begin(env16, TABLES)
    name = env16.ctx.pipeline.publication
    env16.sql(
        f"alter publication {name} set (publish = 'insert'); delete from t; "
        f"alter publication {name} set (publish = 'insert, update, delete, truncate')"
    )

    assert set(captured(env16, "select")) == ALL


def test_a_copy_waits_for_transactions_that_wrote_while_the_publication_was_narrow(env16: PipelineEnv) -> None:
    name = own(env16)
    with env16.source.connect() as early:
        env16.sql(f"alter publication {name} set (publish = 'insert')")
        early.execute("begin; delete from t where id = 1")
        captured(env16, f"alter publication {name} set (publish = 'insert, update, delete, truncate')")
        found = hindered(env16.ctx, to_copy(env16.ctx, None), wait=0)
        assert {error.slug for error in found.values()} == {"table-joining"}
        early.execute("commit")
    assert hindered(env16.ctx, to_copy(env16.ctx, None), wait=0) == {}


def test_a_table_paused_for_another_reason_keeps_it_in_words(env16: PipelineEnv) -> None:
    name = own(env16)
    env16.ctx.ledger.tables.stop(env16.name, {env16.table("t").oid: Trouble.usual("divergence", "a row was not there")})

    reasons = captured(env16, f"create role new_owner superuser; alter publication {name} owner to new_owner")
    assert set(reasons) == ALL, "the catalog does not tell it from an option that was changed and changed back"
    assert "its owner is another" in reasons["u"]
    assert reasons["t"].endswith("; before that it was paused by divergence: a row was not there")


# --- one table's membership --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ("drop table t", "add table only t"),
        ("set table only t where (id > 5), only u", "set table only t, only u"),
        ("set table only t (id, v), only u", "set table only t, only u"),
        ("set table only u", "set table only t, only u"),
    ],
)
def test_a_table_out_and_in_or_with_another_filter_or_columns_for_a_while_is_paused_alone(
    env: PipelineEnv, there: str, back: str
) -> None:
    name = adopted(env, "for table only t, only u with (publish_via_partition_root = true)")

    reasons = captured(
        env, f"alter publication {name} {there}; insert into t values (1000); alter publication {name} {back}"
    )

    assert set(reasons) == {"t"}
    assert "may be in no window" in reasons["t"]
    assert waiting.tables_to_announce(env.ctx) == ["public.t"]
    assert captured(env, "insert into t values (1001)") == reasons, "told once"
    assert len(messages(env, "publication-changed")) == 1


def test_a_filter_that_stays_is_named(env: PipelineEnv) -> None:
    name = adopted(env, "for table only t, only u with (publish_via_partition_root = true)")

    reasons = captured(env, f"alter publication {name} set table only t where (id > 5), only u")

    assert set(reasons) == {"t"}
    assert "row filter" in reasons["t"]


@pytest.mark.parametrize(
    "away",
    [
        "alter table t set schema elsewhere; insert into elsewhere.t values (1000); alter table elsewhere.t set schema public",
        "alter publication {0} drop tables in schema public; insert into t values (1000);"
        "alter publication {0} add tables in schema public",
    ],
)
def test_a_table_of_a_published_schema_that_was_away_for_a_while_is_paused(env: PipelineEnv, away: str) -> None:
    name = adopted(
        env,
        "for tables in schema public with (publish_via_partition_root = true)",
        TABLES + "create schema elsewhere;",
    )
    assert set(states(env).values()) == {"copied"}

    reasons = captured(env, away.format(name))

    assert set(reasons) == ({"t"} if "set schema" in away else ALL)


# --- nothing ---------------------------------------------------------------------------------------------------------------


def test_what_hides_nothing_changes_nothing(env: PipelineEnv) -> None:
    name = own(env)
    env.each(("pg_publication", "pg_publication_rel", "pg_depend"), "vacuum (full, freeze) {t}")

    reasons = captured(
        env,
        f"comment on publication {name} is 'made by penstock for pipeline {env.name}';"
        "create table other (id int primary key); create publication second for table t with (publish = 'insert');"
        "alter publication second set (publish = 'delete'); drop publication second;"
        "grant select on t to public; comment on table t is 'x'; create index on t (v); analyze t",
    )
    assert reasons == {}
    assert states(env) == {**dict.fromkeys(ALL, "copied"), "other": "waiting"}, "which Penstock itself has added"
    env.settings["tables"] = {"include": ["public.*"], "exclude": ["public.other"]}
    assert captured(env, "insert into t values (1000)") == {}
    assert states(env) == {**dict.fromkeys(ALL, "copied"), "other": "dropped"}
    assert alarms(env) == {}
    assert messages(env, "publication-changed") == []


def test_a_publication_that_never_sent_everything_is_an_alarm_as_long_as_it_lasts_and_pauses_nothing(
    env16: PipelineEnv,
) -> None:
    name = adopted(env16, "for table only t, only u with (publish = 'insert')")

    assert captured(env16, "insert into t values (1000); delete from t where id = 1") == {}
    assert states(env16) == {"t": "copied", "u": "copied"}
    assert alarms(env16) == {"publication-narrow": "warn"}
    reasons = captured(env16, f"alter publication {name} set (publish = 'insert, update, delete, truncate')")
    assert set(reasons) == {"t", "u"}
    assert "what was not sent before" in reasons["t"]
    assert alarms(env16) == {}


# --- and what is meant to be narrow -----------------------------------------------------------------------------------------


def meant(env: PipelineEnv, *kinds: str) -> None:
    env.settings["source"] = {**env.settings["source"], "publish": list(kinds)}


def checked(env: PipelineEnv) -> list[str]:
    """Return what the preflight says of the publication."""
    return [f"{each.level}: {each.message}" for each in check(env.ctx) if each.subject.startswith("publication ")]


def test_a_publication_that_is_narrow_as_the_file_says_is_no_alarm_and_a_narrower_one_is(env16: PipelineEnv) -> None:
    name = adopted(env16, "for table only t, only u with (publish = 'insert, truncate')")
    assert alarms(env16) == {"publication-narrow": "warn"}
    assert any("does not publish update, delete" in line for line in checked(env16))

    meant(env16, "insert", "truncate")
    env16.capture()
    assert alarms(env16) == {}
    assert "ok: publishes insert, truncate only, as source.publish says" in "\n".join(checked(env16))

    reasons = captured(env16, f"alter publication {name} set (publish = 'insert')")
    assert set(reasons) == {"t", "u"}
    assert alarms(env16) == {"publication-narrow": "critical"}
    assert waiting.tables_to_announce(env16.ctx) == []

    meant(env16, "insert")
    assert captured(env16, "insert into t values (2000)") == reasons
    assert alarms(env16) == {}
    assert waiting.tables_to_announce(env16.ctx) == ["public.t", "public.u"], (
        "which lack what was sent before and is not any more"
    )

    captured(env16, f"alter publication {name} set (publish = 'insert, update')")
    assert any("it publishes update besides" in line for line in checked(env16))
    assert alarms(env16) == {}


def test_a_publication_that_penstock_makes_publishes_what_the_file_says(env16: PipelineEnv) -> None:
    meant(env16, "insert")
    begin(env16, "create table log (id int); insert into log values (1)")
    assert captured(env16, "insert into log values (2)") == {}

    name = env16.ctx.pipeline.publication
    kinds = "pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot"
    assert env16.sql(f"select {kinds} from pg_publication where pubname = '{name}'") == [
        (True, False, False, False, True)
    ]
    assert alarms(env16) == {}
    env16.sql("update log set id = -id")  # a table without a key takes updates


# --- and the lake is right again -----------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.slow
def test_the_lake_equals_the_source_after_the_copies_that_follow(env16: PipelineEnv) -> None:
    env16.bootstrap(SHOP)
    name = env16.ctx.pipeline.publication
    env16.follow(
        f"alter publication {name} set (publish = 'insert'); delete from item where id < 5; update visit set n = 9;"
        f"alter publication {name} set (publish = 'insert, update, delete, truncate'); insert into item values (900)"
    )
    assert set(states(env16).values()) == {"paused"}

    assert len(waiting.tables_to_announce(env16.ctx)) == 3
    assert env16.wake()

    assert set(states(env16).values()) == {"ready"}
    assert env16.unlike() == []
    follows(env16)


@pytest.mark.spark
def test_a_table_that_waits_for_values_of_a_column_and_was_out_of_the_publication_is_copied_whole(
    env16: PipelineEnv,
) -> None:
    begin(env16, "create table t (id int primary key, v int); insert into t select n, n from generate_series(1, 9) n")
    env16.follow()
    env16.land("alter table t add column u uuid default gen_random_uuid()")
    (waiting,) = env16.tables
    name = env16.ctx.pipeline.publication
    env16.land(
        f"alter publication {name} drop table t; update t set v = 0 where id = 1; alter publication {name} add table t"
    )
    (hidden,) = env16.tables
    assert env16.wake()

    assert (waiting.paused_slug, waiting.remedy) == ("schema-change", "read")
    assert (hidden.paused_slug, hidden.remedy) == ("publication-changed", "copy")
    assert env16.unlike() == []
