"""The preflight says what a source lacks before anything is made, with the next step, and touches nothing."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from inspect import get_annotations, getmembers, getsource, isfunction
from types import ModuleType

import pytest

from penstock.conditions import CONDITIONS
from penstock.shapes.ddl_message import VERSION
from penstock.source import preflight, publication, session, slot
from penstock.source.ddl_trigger import DdlTrigger
from penstock.source.preflight import publication_rules, server_rules, table_rules
from penstock.source.preflight.asked import Asked, gather_facts
from penstock.source.preflight.findings import TEXTS, Finding, Level, Note
from stack.servers.postgres import Database, Server
from tests.source.conftest import all_tables, connection_to, pipeline

SHOP = """
    create schema shop;
    create table shop."Order" (id int primary key);
    create table shop.events (id int, at int, primary key (id, at)) partition by range (at);
    create table shop.events_1 partition of shop.events for values from (0) to (10)
"""


@pytest.fixture
def database(database16: Database) -> Database:
    """The rules are pure; that the questions are understood by each version has a test of its own."""
    return database16


@pytest.fixture
def shop(writer):
    writer.execute(SHOP)
    return writer


@pytest.fixture(scope="module")
def asked(postgres16) -> Iterator[Asked]:
    """What a healthy source answers, to be made ill."""
    with postgres16.temporary_database("asked") as database:
        database.execute(SHOP)
        with session.connect(connection_to(database), what="test") as conn:
            yield gather_facts(conn, pipeline("shop.*"), schedule_seconds=60, own_slot=False)


def findings(asked: Asked) -> list[Finding]:
    return preflight.judge(asked)


def level(found: list[Finding], level: Level) -> list[Finding]:
    return [finding for finding in found if finding.level == level]


def only_error(found: list[Finding]) -> Finding:
    (finding,) = level(found, "error")
    assert finding.next_step
    return finding


def test_a_source_that_is_ready_has_no_error_and_nothing_is_made(conn, shop):
    found = preflight.check(conn, pipeline("shop.*"))

    assert level(found, "error") == []
    assert [finding.subject for finding in level(found, "warn")] == [
        "max_slot_wal_keep_size",
        "source.reader_connection",
        "partitions",
    ]
    subjects = {finding.subject: finding.message for finding in level(found, "ok")}
    assert subjects["wal_level"] == "logical"
    assert subjects["publication penstock_shop"] == "does not exist, bootstrap will make it for 2 tables"
    assert subjects["slot penstock_shop"] == "does not exist, bootstrap will make it"
    assert subjects["privileges"] == "may read all 2 heaps to copy"
    assert publication.read_publication(conn, "penstock_shop") is None


def test_the_memory_that_a_large_row_needs_is_said(conn, shop):
    (found,) = [finding for finding in preflight.check(conn, pipeline("shop.*")) if finding.subject == "large rows"]

    assert found.level == "ok"
    assert "3.5 times its text" in found.message
    assert "3.8 GiB at most" in found.message


def test_errors_come_first_and_every_finding_names_a_kind_of_error(conn, shop):
    shop.execute(
        'create table shop."no key" (id int); create view shop.v as select 1; create unlogged table shop.u (id int)'
    )

    found = preflight.check(conn, pipeline("shop.*", "nowhere.*"))

    levels = [finding.level for finding in found]
    assert levels == sorted(levels, key=["error", "warn", "ok"].index)
    assert {finding.slug for finding in found} <= set(CONDITIONS)
    assert all(finding.next_step for finding in found if finding.level != "ok")


def test_what_bootstrap_made_is_found_in_order(conn, source, shop):
    wanted = pipeline("shop.*")
    publication.ensure(conn, wanted)
    with slot.create_exporting(source, "penstock_shop", timeout=30):
        pass
    shop.execute('insert into shop."Order" values (1)')

    found = preflight.check(conn, wanted, own_slot=True)

    assert level(found, "error") == []
    assert any("publishes what is chosen: 2 tables" in finding.message for finding in found)


# --- tables -------------------------------------------------------------------------------------------------


def test_a_table_that_would_refuse_updates_is_an_error_with_the_statement_that_helps(conn, shop):
    shop.execute('create table shop."no key" (id int)')

    found = only_error(preflight.check(conn, pipeline("shop.*")))

    assert (found.slug, found.subject) == ("no-usable-identity", "shop.no key")
    shop.execute(found.next_step.removeprefix("run: ").removesuffix("; or exclude it"))
    assert level(preflight.check(conn, pipeline("shop.*")), "error") == []


@pytest.mark.parametrize(
    "table",
    [
        "id regclass primary key",
        "id regrole, n int, primary key (n, id)",
        "id regtype not null, n int); alter table shop.named replica identity full; create table shop.other (n int primary key",
        "id shop.relations primary key",
    ],
    ids=["key", "part of a key", "whole rows", "array of a domain"],
)
def test_a_key_of_names_of_other_objects_is_an_error_with_the_statement_that_helps(conn, shop, table):
    shop.execute("create domain shop.relation as regclass; create domain shop.relations as shop.relation[]")
    shop.execute(f"create table shop.named ({table})")

    found = only_error(preflight.check(conn, pipeline("shop.*")))

    assert (found.slug, found.subject) == ("no-usable-identity", "shop.named")
    assert "old rows are not found any more" in found.message
    shop.execute(found.next_step.partition("run: ")[2].partition(";")[0])
    assert level(preflight.check(conn, pipeline("shop.*")), "error") == []


def test_a_column_of_names_of_other_objects_is_warned_of_with_the_statement_that_ends_it(conn, shop):
    shop.execute(
        "create type shop.rule as (grantee regrole, n int);"
        'create table shop.log (id int primary key, relation regclass, rules shop.rule[], "to whom" aclitem[])'
    )

    def warned() -> list[Finding]:
        found = preflight.check(conn, pipeline("shop.*"))
        assert level(found, "error") == []
        return [each for each in found if each.slug == "text-not-stored"]

    (found,) = warned()
    assert found.subject == "shop.log"
    assert "relation (regclass), rules (regrole), to whom (aclitem)" in found.message
    shop.execute(found.next_step.partition("run: ")[2])
    assert warned() == []


def test_a_deferrable_key_is_an_error_with_the_statement_that_lets_whole_rows_be_the_key(conn, shop):
    shop.execute("create table shop.list (list int, pos int, primary key (list, pos) deferrable)")

    found = only_error(preflight.check(conn, pipeline("shop.*")))

    assert (found.slug, found.subject) == ("no-usable-identity", "shop.list")
    assert "its primary key is deferrable" in found.message
    statement, _, other = found.next_step.removeprefix("run: ").partition("; ")
    assert (statement, other) == ('alter table "shop"."list" replica identity full', "or exclude it")
    shop.execute(statement)
    after = preflight.check(conn, pipeline("shop.*"))
    assert level(after, "error") == []
    (told,) = [finding for finding in after if finding.subject == "shop.list"]
    assert (told.level, told.message.partition(", so ")[0]) == ("warn", "its primary key is deferrable")
    (table,) = [table for table in all_tables(conn) if table.name == "list"]
    assert (table.identity, table.key) == ("f", ())
    publication.ensure(conn, pipeline("shop.*"))
    shop.execute("insert into shop.list select 1, i from generate_series(1, 5) i; update shop.list set pos = pos + 1")


def test_a_partition_whose_part_of_the_key_is_deferrable_is_an_error_until_whole_rows_are_the_key(conn, shop):
    shop.execute(
        "create table shop.late (id int, at int, primary key (id, at) deferrable); alter table shop.late replica identity full; "
        "alter table shop.events attach partition shop.late for values from (10) to (20)"
    )

    found = only_error(preflight.check(conn, pipeline("shop.*")))

    assert (found.slug, found.subject) == ("no-usable-identity", "shop.events")
    assert "its key is deferrable, in a partition at least: two rows may have it" in found.message
    assert found.next_step.startswith("set replica identity full for it and each partition")
    shop.execute("alter table shop.events replica identity full; alter table shop.events_1 replica identity full")
    after = preflight.check(conn, pipeline("shop.*"))
    assert level(after, "error") == []
    assert "its primary key is deferrable in a partition at least" in " ".join(
        each.message for each in level(after, "warn")
    )


def test_an_array_of_more_dimensions_is_warned_of_until_the_entry_that_the_warning_gives_is_in_the_file(conn, shop):
    shop.execute(
        'create domain shop.cube as int[][][]; create table shop."a.b" '
        '(id int primary key, grid int[][], "my cube" shop.cube, row_ int[], names text[], box box[][])'
    )

    found = [each for each in preflight.check(conn, pipeline("shop.*")) if "dimensions" in each.message]

    assert [each.subject for each in found] == ["shop.a.b"] * 2
    assert "column grid is an array of 2 dimensions" in found[0].message
    assert "column my cube is an array of 3 dimensions" in found[1].message
    entries = [json.loads((each.next_step or "").partition("tables.columns: ")[2]) for each in found]
    chosen = pipeline("shop.*", columns=entries)
    after = preflight.check(conn, chosen)
    assert [each for each in after if "dimensions" in each.message] == []
    assert level(after, "error") == []


def test_a_choice_of_text_that_chooses_no_array_is_an_error(conn, shop):
    shop.execute("create table shop.t (id int primary key, n int, grid int[][])")
    entry = {"include": ["shop.t"], "columns": ["grid", "n", "grdi"], "type": "string"}

    found = only_error(preflight.check(conn, pipeline("shop.*", columns=[entry])))

    assert (found.slug, found.subject) == ("config-invalid", "tables.columns[0]")
    assert "no such column n, grdi in shop.t" in found.message


def test_a_table_without_a_key_is_fine_where_only_inserts_are_published(conn, shop):
    shop.execute(
        "create table shop.log (id int); create publication theirs for table shop.log with (publish = 'insert')"
    )

    found = preflight.check(conn, pipeline("shop.log", publication="theirs", adopt=True))

    assert level(found, "error") == []
    assert any("does not publish update, delete, truncate" in finding.message for finding in found)


def test_patterns_that_match_no_table_are_an_error(conn, shop):
    found = only_error(preflight.check(conn, pipeline("shop.*", "nowhere.*")))

    assert found.slug == "no-matching-tables"
    assert "nowhere.*" in found.message


def test_what_is_not_in_the_wal_is_named(conn, shop):
    shop.execute("create view shop.v as select 1 as n; create unlogged table shop.u (id int primary key)")
    shop.execute("create unlogged table shop.events_2 partition of shop.events for values from (10) to (20)")

    messages = " ".join(finding.message for finding in level(preflight.check(conn, pipeline("shop.*")), "warn"))

    assert "a view: shop.v" in messages
    assert "an unlogged table: shop.u" in messages
    assert "will not be in the lake: shop.events_2" in messages


def test_an_excluded_partition_of_a_chosen_table_is_an_error(conn, shop):
    found = only_error(preflight.check(conn, pipeline("shop.*", exclude=["shop.events_1"])))

    assert "shop.events_1" in found.message


def test_a_column_that_every_mirror_has_is_refused(conn, shop):
    shop.execute('alter table shop."Order" add "_Misfits" text')

    found = only_error(preflight.check(conn, pipeline("shop.*")))

    assert (found.slug, found.subject) == ("target-clash", "shop.Order")


def test_two_tables_of_one_target_are_refused(conn, shop):
    shop.execute(
        'create schema "a.b"; create schema a_b; create table "a.b".t (id int primary key); create table a_b.t (id int primary key)'
    )

    found = only_error(preflight.check(conn, pipeline('"a.b".*', "a_b.*")))

    assert (found.slug, found.subject) == ("target-clash", "shop.a_b.t")
    assert "a.b.t, a_b.t" in found.message


def test_a_table_named_as_our_own_is_refused(conn, shop):
    shop.execute("create table shop._penstock_cuts (id int primary key)")

    found = only_error(preflight.check(conn, pipeline("shop.*", lake={"target": "{namespace}.{table}"})))

    assert found.slug == "target-clash"


def test_a_table_named_as_another_ones_changelog_is_refused_unless_that_has_none(conn, shop):
    shop.execute("create table shop.t (id int primary key); create table shop.t__changelog (id int primary key)")

    found = only_error(preflight.check(conn, pipeline("shop.*")))
    assert (found.slug, found.subject) == ("target-clash", "shop.shop.t__changelog")
    assert "the changelog of shop.t, shop.t__changelog" in found.message

    without = pipeline("shop.*", changelog={"tables": {"include": ["*.*"], "exclude": ["shop.t"]}})
    assert not level(preflight.check(conn, without), "error")


def test_generated_columns_and_row_filters_are_named(conn, shop):
    shop.execute(
        """create table shop.g (id int primary key, d int generated always as (1) stored);
        create publication theirs for table shop.g where (id > 5)"""
    )

    found = level(preflight.check(conn, pipeline("shop.g", publication="theirs", adopt=True)), "warn")

    messages = [finding.message for finding in found if finding.subject == "shop.g"]
    assert "will not be in the lake: d" in messages[0]
    assert "row filter" in messages[1]


# --- privileges ---------------------------------------------------------------------------------------------


def test_a_role_with_nothing_learns_all_that_it_lacks_and_the_grants_help(conn, shop, new_role):
    reader = new_role("reader")
    wanted = pipeline("shop.*", publication="theirs", adopt=True)
    with session.connect(reader, what="test") as poor:
        found = level(preflight.check(poor, wanted), "error")
        assert [finding.slug for finding in found] == ["source-auth"] * 4
        assert not any("password" in finding.message for finding in found)
        shop.execute(found[0].next_step.removeprefix("run: ").split(" (on")[0])
        shop.execute(found[1].next_step.removeprefix("let the owner run: ").split("; and")[0])
        for finding in found[2:]:
            shop.execute(finding.next_step.removeprefix("run: "))
        assert level(preflight.check(poor, wanted), "error") == []


def test_a_role_that_policies_narrow_is_refused(shop, new_role):
    reader = new_role("reader", "login replication")
    shop.execute(
        f"""create publication theirs for table shop."Order"; alter table shop."Order" enable row level security;
        grant usage on schema shop to {reader.user}; grant select on shop."Order" to {reader.user}"""
    )
    with session.connect(reader, what="test") as conn:
        found = only_error(preflight.check(conn, pipeline("shop.Order", publication="theirs", adopt=True)))

        assert (found.slug, found.subject) == ("source-auth", "row-level security")


# --- publication and slot -----------------------------------------------------------------------------------


def test_a_publication_of_another_owner_is_refused_and_differences_are_named(conn, shop):
    shop.execute(
        'create table shop.extra (id int primary key); create publication theirs for table shop."Order", shop.extra'
    )

    found = level(preflight.check(conn, pipeline("shop.Order", "shop.events", publication="theirs")), "error")
    adopted = preflight.check(conn, pipeline("shop.Order", publication="theirs", adopt=True))

    assert [finding.message.split(",")[0] for finding in found] == [
        "expected none of this name",
        "expected publish_via_partition_root = true for the partitioned tables shop.events",
    ]
    assert level(adopted, "error") == []
    assert any("more than tables.include chooses, and that is mirrored too: shop.extra" in f.message for f in adopted)


def test_a_publication_that_lacks_a_table_is_an_error_with_the_statement_that_adds_it(conn, shop):
    shop.execute("create table shop.later (id int primary key); create publication theirs for table shop.events")
    shop.execute("alter publication theirs set (publish_via_partition_root = true)")
    wanted = pipeline("shop.*", publication="theirs", adopt=True)

    found = only_error(preflight.check(conn, wanted))
    shop.execute(found.next_step.split("let the owner run: ")[1])

    assert "lacks shop.Order, shop.later" in found.message
    assert level(preflight.check(conn, wanted), "error") == []


def test_for_all_tables_is_warned_of(conn, shop):
    shop.execute("create publication theirs for all tables with (publish_via_partition_root = true)")

    found = preflight.check(conn, pipeline("shop.*", publication="theirs", adopt=True))

    assert level(found, "error") == []
    assert any("FOR ALL TABLES" in finding.message for finding in level(found, "warn"))


def test_a_publication_younger_than_the_adopted_slot_is_an_error(conn, shop):
    shop.execute("select pg_create_logical_replication_slot('penstock_shop', 'pgoutput')")
    missing = only_error(preflight.check(conn, pipeline("shop.Order", adopt=True)))
    shop.execute('create publication penstock_shop for table shop."Order"')
    younger = only_error(preflight.check(conn, pipeline("shop.Order", adopt=True)))
    shop.execute("select pg_drop_replication_slot('penstock_shop')")
    shop.execute("select pg_create_logical_replication_slot('penstock_shop', 'pgoutput')")

    assert (missing.slug, younger.slug) == ("publication-missing", "publication-missing")
    assert level(preflight.check(conn, pipeline("shop.Order", adopt=True)), "error") == []


def test_a_slot_that_is_there_already_is_refused_unless_adopted_or_ours(conn, shop):
    shop.execute('create publication penstock_shop for table shop."Order"')
    shop.execute("select pg_create_logical_replication_slot('penstock_shop', 'pgoutput')")

    found = level(preflight.check(conn, pipeline("shop.Order")), "error")

    assert [finding.slug for finding in found] == ["slot-exists", "preflight-failed"]
    assert level(preflight.check(conn, pipeline("shop.Order", adopt=True), own_slot=False), "error") == []


@pytest.mark.parametrize(
    ("make", "what"),
    [
        ("select pg_create_logical_replication_slot('penstock_shop', 'pgoutput', false, true)", "two_phase on"),
        ("select pg_create_physical_replication_slot('penstock_shop')", "none (a physical slot)"),
    ],
)
def test_a_slot_that_a_batch_reader_cannot_use_is_an_error(conn, shop, make, what):
    shop.execute('create publication penstock_shop for table shop."Order"')
    shop.execute(make)
    try:
        found = only_error(preflight.check(conn, pipeline("shop.Order", adopt=True)))
    finally:
        shop.execute("select pg_drop_replication_slot('penstock_shop')")

    assert found.slug == "slot-unusable"
    assert what in found.message


def test_transactions_that_would_block_the_slot_are_named_without_their_statements(conn, shop):
    shop.execute("""begin; insert into shop."Order" values (4711); prepare transaction 'left over'""")
    try:
        found = level(preflight.check(conn, pipeline("shop.*")), "warn")
    finally:
        shop.execute("rollback prepared 'left over'")

    (blocked,) = (finding for finding in found if finding.slug == "slot-creation-blocked")
    assert 'prepared "left over" of role "postgres"' in blocked.message
    assert "4711" not in str(found)


# --- what the two servers of the tests cannot show: the same answers, changed in one place ----------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"version_num": 130_020, "version": "13.20"}, "error"),
        ({"version_num": 150_014, "version": "15.14"}, "warn"),
        ({"version_num": 150_015, "version": "15.15"}, "ok"),
        ({"version_num": 190_000, "version": "19.0"}, "warn"),
    ],
)
def test_versions_are_judged(asked, changes, expected):
    server = replace(asked.server, **changes)

    assert {f.level for f in findings(replace(asked, server=server)) if f.subject == "version"} == {expected}


@pytest.mark.parametrize(
    ("timeout", "schedule", "expected"),
    [(0, 60, None), (60, 60, "error"), (120, 60, "warn"), (180, 60, "ok"), (180, None, "warn")],
)
def test_an_idle_timeout_is_held_against_the_schedule(asked, timeout, schedule, expected):
    changed = replace(asked, server=replace(asked.server, idle_slot_timeout=timeout), schedule_seconds=schedule)

    found = [f.level for f in findings(changed) if f.subject == "idle_replication_slot_timeout"]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("changes", "subject", "slug"),
    [
        ({"wal_level": "replica"}, "wal_level", "preflight-failed"),
        ({"encoding": "SQL_ASCII"}, "server_encoding", "preflight-failed"),
        ({"output_plugins": "test_decoding"}, "output_plugin_libraries", "preflight-failed"),
        ({"max_replication_slots": 0}, "max_replication_slots", "no-free-slot"),
        ({"max_wal_senders": 0}, "max_wal_senders", "preflight-failed"),
        ({"in_recovery": True, "version_num": 160_014}, "publication penstock_shop", "publication-missing"),
        ({"in_recovery": True, "version_num": 150_018}, "version", "preflight-failed"),
    ],
)
def test_a_server_that_cannot_serve_is_refused(asked, changes, subject, slug):
    found = level(findings(replace(asked, server=replace(asked.server, **changes))), "error")

    assert (subject, slug) in [(finding.subject, finding.slug) for finding in found]


def test_limits_on_kept_wal_and_temporary_files_are_weighed(asked):
    small = replace(asked.server, max_slot_wal_keep_size=300 << 20, temp_file_limit=1 << 20)
    roomy = replace(asked.server, max_slot_wal_keep_size=64 << 30)

    tight = {f.subject: f.level for f in findings(replace(asked, server=small))}
    wide = {f.subject: f.level for f in findings(replace(asked, server=roomy))}

    assert (tight["max_slot_wal_keep_size"], tight["temp_file_limit"]) == ("warn", "warn")
    assert wide["max_slot_wal_keep_size"] == "ok"


def found_by_a_poor_role(server: Server, made: str = "select", **keys: object) -> list[Finding]:
    """Return what is found of a shop as a role with only the rights that the documents ask for."""
    role = "poor_reader"
    with server.temporary_database("answers") as database:
        database.execute(f"{SHOP}; {made}; create role {role} login replication password 'of the role'")
        database.execute(f"grant usage on schema shop to {role}; grant select on all tables in schema shop to {role}")
        try:
            with session.connect(connection_to(database, role, "of the role"), what="test") as conn:
                return preflight.check(conn, pipeline("shop.Order", publication="theirs", **keys))
        finally:
            database.execute(f"drop owned by {role}; drop role {role}")


def test_every_version_answers_a_role_with_only_the_rights_that_the_documents_ask_for(postgres):
    found = found_by_a_poor_role(postgres, 'create publication theirs for table shop."Order"', adopt=True)

    assert level(found, "error") == []


@pytest.mark.parametrize("adopt", [True, False])
def test_a_publication_that_we_may_not_make_is_not_promised_and_its_owner_is_told_what_to_run(postgres16, adopt):
    found = found_by_a_poor_role(postgres16, adopt=adopt)

    (about,) = [finding for finding in found if finding.subject == "publication theirs"]
    assert (about.level, about.slug) == ("error", "source-auth")
    assert about.next_step.startswith('let the owner run: create publication "theirs" for table')
    assert ("source.adopt" in about.next_step) is not adopt, "what the file says already is not asked for"


def test_every_version_understands_the_questions_and_origin_none_needs_16(postgres):
    with (
        postgres.temporary_database("questions") as database,
        session.connect(connection_to(database), what="test") as conn,
    ):
        database.execute(SHOP + '; create publication theirs for table shop."Order"')
        adopting = preflight.check(conn, pipeline("shop.Order", publication="theirs", adopt=True))
        found = level(preflight.check(conn, pipeline("shop.*", origin="none")), "error")

    assert level(adopting, "error") == []
    assert [finding.subject for finding in found] == ([] if postgres.major >= 16 else ["source.origin"])


def test_asking_writes_nothing(conn, shop):
    conn.execute("set default_transaction_read_only = on")

    assert level(preflight.check(conn, pipeline("shop.*")), "error") == []


@pytest.mark.parametrize("module", [server_rules, publication_rules, table_rules])
def test_every_rule_of_a_module_is_asked(module: ModuleType) -> None:
    functions = [each for _, each in getmembers(module, isfunction) if each.__module__ == module.__name__]
    rules = [
        each for each in functions if list(get_annotations(each, eval_str=True).values()) == [Asked, Iterator[Note]]
    ]

    assert rules
    assert [name for name in (each.__name__ for each in rules if each not in preflight.RULES) if name[0] != "_"] == []


def test_every_finding_of_the_table_is_named_by_a_rule_and_none_besides() -> None:
    texts = "".join(getsource(module) for module in (server_rules, publication_rules, table_rules))

    assert set(TEXTS) == set(re.findall(r'note\(\s*"([a-z-]+)"', texts)) | {"schemas", "unreadable", "narrowed"} | {
        name for pair in re.findall(r'note\("([a-z-]+)" if .+? else "([a-z-]+)"', texts) for name in pair
    }


@pytest.mark.parametrize(
    ("found", "level_", "said"),
    [
        (DdlTrigger(VERSION, "token"), "ok", f"version {VERSION} is installed"),
        (DdlTrigger(None, None), "warn", "not installed"),
        (DdlTrigger(VERSION, None), "warn", "not enabled in every session"),
        (DdlTrigger(VERSION - 1, "token"), "warn", f"older than {VERSION}"),
        (DdlTrigger(VERSION + 1, "token"), "warn", f"newer than {VERSION}"),
    ],
)
def test_an_event_trigger_that_is_asked_for_is_looked_at(
    asked: Asked, found: DdlTrigger, level_: Level, said: str
) -> None:
    (finding,) = [each for each in findings(replace(asked, ddl_trigger=found)) if each.subject == "ddl_trigger"]

    assert (finding.level, said in finding.message) == (level_, True)
    assert list(server_rules.ddl_trigger(replace(asked, ddl_trigger=None))) == []


def test_check_asks_for_a_reader_and_its_advice_makes_one_that_it_then_finds_in_order(source, database, conn, shop):
    (asks,) = [each for each in preflight.check(conn, pipeline("shop.*")) if each.subject == "source.reader_connection"]
    statements = asks.next_step[asks.next_step.index("create role") : asks.next_step.index(" Then set a password")]
    assert "functions that their owners put into indexes run as" in asks.message

    role = "reader_of_this_test"  # roles are of the whole server, and the demo's tests have one of this name
    shop.execute(statements.replace("penstock_reader", role))  # the advice is tried
    try:
        shop.execute(f"alter role {role} password 'of the role'")
        with session.connect(connection_to(database, role, "of the role"), what="test") as reader:
            found = preflight.check(conn, pipeline("shop.*"), reader=reader)
            refused = preflight.check(conn, pipeline("*.*"), reader=conn)
        subjects = {each.subject: (each.level, each.message) for each in found}
        assert subjects["source.reader_connection"] == (
            "ok",
            f'"{role}" reads tables, and may do nothing else',
        )
        assert subjects["privileges"] == ("ok", "may read all 2 heaps to copy")
        assert "got the same" in next(each.message for each in refused if each.subject == "source.reader_connection")

        shop.execute(f"alter role {role} replication; revoke select on shop.events_1 from {role}")
        with session.connect(connection_to(database, role, "of the role"), what="test") as reader:
            found = preflight.check(conn, pipeline("shop.*"), reader=reader)
        worse = {each.subject: each for each in found if each.level != "ok"}
        assert "it has the attribute REPLICATION" in worse["source.reader_connection"].message
        assert worse["privileges"].next_step == f'run: grant select on "shop"."events_1" to "{role}"'
    finally:
        shop.execute(f"drop owned by {role}; drop role {role}")


def test_a_reader_that_leads_elsewhere_is_an_error(conn, shop, postgres16):
    with (
        postgres16.temporary_database("elsewhere") as other,
        session.connect(connection_to(other), what="test") as reader,
    ):
        found = preflight.check(conn, pipeline("shop.*"), reader=reader)
    first = next(each for each in found if each.subject == "source.reader_connection")
    assert first.level == "error"
    assert "got elsewhere on one" in first.message


def test_defaults_of_transactions_that_a_dba_has_set_for_a_role_are_pinned_and_others_are_named(
    database, new_role, shop
):
    reader = new_role("careful", "login superuser")
    shop.execute(
        f"alter role {reader.user} set default_transaction_read_only = on; "
        f"alter role {reader.user} set default_transaction_isolation = 'serializable'; "
        f"alter role {reader.user} set default_transaction_deferrable = on; "
        f"alter role {reader.user} set session_replication_role = replica; "
        f"alter database {database.name} set default_transaction_read_only = on"
    )
    with session.connect(reader, what="test") as conn:
        made = publication.ensure(conn, pipeline("shop.*"))
        isolation = conn.execute("show default_transaction_isolation").fetchone()
        found = {each.subject: each for each in preflight.check(conn, pipeline("shop.*"))}
        publication.drop(conn, "penstock_shop")

    assert made > 0
    assert isolation == ("read committed",)
    assert found["session_replication_role"].level == "warn"
    shop.execute(f"alter database {database.name} reset default_transaction_read_only")
    shop.execute(found["session_replication_role"].next_step.partition("run: ")[2])  # the advice is tried
    with session.connect(reader, what="test") as conn:
        assert "session_replication_role" not in {each.subject for each in preflight.check(conn, pipeline("shop.*"))}
