"""The publication has exactly the tables that the patterns choose, and one that is not ours is never touched."""

import pytest

from penstock.errors import ConfigError, SourceError
from penstock.shapes import row_identity
from penstock.source import publication, refusals, session
from penstock.source.catalog_snapshot import read_catalog
from tests.source.conftest import all_tables, connection_to, pipeline

SHOP = """
    create schema shop;
    create table shop."Order" (id int primary key);
    create table shop.below (primary key (id)) inherits (shop."Order");
    create table shop.events (id int, at int, primary key (id, at)) partition by range (at);
    create table shop.events_1 partition of shop.events for values from (0) to (10);
    create view shop.v as select 1 as one;
    create unlogged table shop.scratch (id int primary key);
    create table public.keyless (id int)
"""


@pytest.fixture
def shop(writer):
    writer.execute(SHOP)
    return writer


def members(writer, name: str = "penstock_shop") -> set[str]:
    rows = writer.execute(
        "select schemaname || '.' || tablename from pg_publication_tables where pubname = %s", (name,)
    )
    return {qualified for (qualified,) in rows}


def test_it_is_made_from_the_patterns_through_the_roots_and_for_each_table_only(conn, shop):
    oid = publication.ensure(conn, pipeline("shop.*", exclude=["shop.below"]))

    found = publication.read_publication(conn, "penstock_shop")
    assert found.oid == oid
    assert (found.all_tables, found.generated) == (False, False)
    assert found.sent == ["insert", "update", "delete", "truncate", "via_root"]
    assert members(shop) == {"shop.Order", "shop.events"}
    assert [table.name for table in read_catalog(conn, "penstock_shop", sizes=True).tables] == ["Order", "events"]


def test_a_partition_alone_is_published_as_itself(conn, shop):
    publication.ensure(conn, pipeline("shop.events_1"))

    assert members(shop) == {"shop.events_1"}


def test_made_again_it_stays_the_same_and_is_not_altered(conn, shop):
    first = publication.ensure(conn, pipeline("shop.*"))
    stamp = publication.read_publication(conn, "penstock_shop").stamp

    assert publication.ensure(conn, pipeline("shop.Order")) == first
    assert publication.read_publication(conn, "penstock_shop").stamp == stamp
    assert "shop.events" in members(shop)


def test_the_stamp_shows_that_it_was_renamed_away_and_back(conn, shop):
    publication.ensure(conn, pipeline("shop.*"))
    before = publication.read_publication(conn, "penstock_shop")
    shop.execute("alter publication penstock_shop rename to elsewhere")
    shop.execute("alter publication elsewhere rename to penstock_shop")

    after = publication.read_publication(conn, "penstock_shop")

    assert after.oid == before.oid
    assert after.stamp != before.stamp


def test_one_of_another_owner_is_refused_unless_it_is_to_be_adopted(conn, shop):
    shop.execute('create publication theirs for table only shop."Order"')

    with pytest.raises(SourceError, match=r"source\.adopt: true") as caught:
        publication.ensure(conn, pipeline("shop.*", publication="theirs"))
    oid = publication.ensure(conn, pipeline("shop.*", publication="theirs", adopt=True))

    assert caught.value.slug == "preflight-failed"
    assert oid == publication.read_publication(conn, "theirs").oid
    assert members(shop, "theirs") == {"shop.Order"}


def test_patterns_that_match_no_table_are_refused_with_what_they_match_instead(conn, shop):
    with pytest.raises(ConfigError, match=r"got none for shop\.v, nowhere\.\* \(shop\.v is a view\)") as caught:
        publication.ensure(conn, pipeline("shop.Order", "shop.v", "nowhere.*"))

    assert caught.value.slug == "no-matching-tables"
    assert publication.read_publication(conn, "penstock_shop") is None


def test_a_table_that_would_refuse_the_applications_updates_is_not_published(conn, shop):
    with pytest.raises(SourceError, match=r"public\.keyless: it has no primary key") as caught:
        publication.ensure(conn, pipeline("*.*"))

    assert caught.value.slug == "no-usable-identity"
    shop.execute("insert into public.keyless values (1); update public.keyless set id = 2")


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("create table t (id int primary key deferrable)", "public.t: its primary key is deferrable"),
        (
            "create table t (id int primary key, at int not null unique); alter table t replica identity using index "
            "t_at_key; alter table t drop constraint t_at_key",
            "public.t: it has no primary key or identity index that counts.*run: alter table .* replica identity default",
        ),
        (
            "create table t (id int primary key) partition by range (id); create table t1 partition of t for values from (0) to "
            "(9); alter table t1 replica identity nothing",
            r"public\.t: .*\(partition public\.t1\); run: alter table \"public\"\.\"t1\" replica identity default",
        ),
    ],
)
def test_what_the_server_would_refuse_takes_the_publication_back_and_names_the_way_out(
    conn, writer, ddl: str, said: str
):
    writer.execute(ddl)

    with pytest.raises(SourceError, match=said) as caught:
        publication.ensure(conn, pipeline("public.*"))

    assert caught.value.slug == "no-usable-identity"
    assert publication.read_publication(conn, "penstock_shop") is None
    writer.execute("update t set id = id; delete from t")


def test_on_18_full_rows_with_a_generated_column_are_not_published(postgres18):
    with (
        postgres18.temporary_database("generated") as database,
        session.connect(connection_to(database), what="test") as conn,
        database.connect() as writer,
    ):
        for kind in ("stored", "virtual"):
            writer.execute(
                f"create table {kind} (id int primary key, g int generated always as (id + 1) {kind}); "
                f"alter table {kind} replica identity full"
            )
        with pytest.raises(SourceError, match=r"does not send: g; run: alter table .*stored.*virtual") as caught:
            publication.ensure(conn, pipeline("public.*"))
        assert caught.value.slug == "no-usable-identity"
        writer.execute("update stored set id = id; delete from virtual")

        for _, step in map(refusals.explained, refused_by(conn, "stored", "virtual")):
            writer.execute(step.removeprefix("run: "))
        publication.ensure(conn, pipeline("public.*"))
        assert members(writer) == {"public.stored", "public.virtual"}
        writer.execute("update stored set id = id; delete from virtual")


def refused_by(conn, *names: str) -> list[list[refusals.Refusal]]:
    oids = [table.oid for table in all_tables(conn) if table.name in names]
    return list(refusals.by_table(refusals.read_refusals(conn, "penstock_shop", joining=oids)).values())


def test_a_table_joins_only_if_the_server_takes_its_updates_afterwards(conn, shop):
    publication.ensure(conn, pipeline("shop.*"))
    (keyless,) = (each for each in all_tables(conn) if each.name == "keyless")

    with pytest.raises(SourceError, match=r"public\.keyless: .*run: alter table .* replica identity full") as caught:
        publication.add(conn, "penstock_shop", [keyless])

    assert caught.value.slug == "no-usable-identity"
    assert "public.keyless" not in members(shop)


def test_partitions_with_another_identity_than_their_root_are_refused(conn, writer):
    writer.execute(
        """create table m (a int primary key, b int) partition by range (a);
        create table m_1 partition of m for values from (0) to (9);
        create table m_2 partition of m for values from (9) to (20);
        alter table m_2 replica identity nothing"""
    )
    (table,) = (each for each in all_tables(conn) if each.name == "m")
    assert (
        "these partitions have another replica identity than the partitioned table: public.m_2"
        in row_identity.problem(table)[0]
    )

    writer.execute("alter table m_2 replica identity full")
    (table,) = (each for each in all_tables(conn) if each.name == "m")
    assert row_identity.problem(table) is None

    writer.execute("alter table m replica identity full")
    (table,) = (each for each in all_tables(conn) if each.name == "m")
    assert "public.m_1" in row_identity.problem(table)[0]


def test_a_role_that_does_not_own_the_tables_is_named(shop, new_role):
    with (
        session.connect(new_role("reader"), what="test") as conn,
        pytest.raises(SourceError, match=r"permission denied|must be owner") as caught,
    ):
        publication.ensure(conn, pipeline('shop."Order"'))
    assert caught.value.slug == "source-auth"


def test_the_statements_for_a_dba_do_the_same(conn, shop):
    tables = read_catalog(conn, "none", patterns=pipeline("shop.*").tables).chosen

    shop.execute(publication.create_statement("by hand", tables[:1]))
    shop.execute(publication.add_statement("by hand", tables[1:]))
    assert members(shop, "by hand") == {f"shop.{table.name}" for table in tables}

    publication.drop(conn, "by hand")
    assert publication.drop_statement("by hand") == 'drop publication "by hand"'
    with pytest.raises(SourceError) as caught:
        publication.drop(conn, "by hand")
    assert caught.value.slug == "publication-missing"
