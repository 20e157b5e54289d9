"""Columns of types that an extension brings, before and after these types are installed, moved or dropped; 15 and 18 have the extensions."""

import pytest

from tests.pipeline_env import PipelineEnv
from tests.scenarios.stories import Story, tell, unlike, wrong

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXTENSIONS = ("citext", "hstore", "ltree")
MADE = """
create table {t} (id int primary key, a text, c citext, cs citext[], h hstore, l ltree, n int);
insert into {t} select i, 'a' || i, 'C' || i, array['X', 'y']::citext[], hstore('k' || i, 'v'), ('a.b' || i)::ltree, i from generate_series(1, 20) i
"""
EARLY = """
create table {t} (id int primary key, a text, n int);
insert into {t} select i, 'a' || i, i from generate_series(1, 20) i
"""
ROWS = "update {t} set n = n + 1 where n % 3 = 0; delete from {t} where n = 5; update {t} set id = id + 100 where n = 8"
FULL = "insert into {t} values (50, 'new', 'New', '{{A,b}}', 'x=>1, y=>null', 'a.b.c', 50)"
KEYED = (
    "create table {t} (c citext primary key, n int); insert into {t} select 'K' || i, i from generate_series(1, 20) i"
)
BY_CASE = (
    "update {t} set c = lower(c::text) where n in (3, 4); update {t} set n = n + 20 where n in (3, 5); "
    "delete from {t} where n = 6; insert into {t} values ('k6', 6)"
)
BOTH_CASES = "insert into {t} values ('k9', 60); update {t} set n = n + 1000 where c = 'K9'"
DOMAINS = """
create domain {t}_w as citext; create domain {t}_i as int;
create table {t} (id int primary key, w {t}_w, i {t}_i);
insert into {t} select i, 'W' || i, i from generate_series(1, 20) i
"""
DOMAIN_ROWS = (
    "update {t} set w = 'x' || w::text, i = i + 1 where i % 3 = 0; delete from {t} where id = (select min(id) from {t})"
)

STORIES = {
    "text_to_citext": Story((ROWS, "alter table {t} alter a type citext", FULL, ROWS), made=MADE),
    "citext_to_text": Story((ROWS, "alter table {t} alter c type text", FULL, ROWS), made=MADE),
    "there_and_back": Story(
        (ROWS, "alter table {t} alter c type text", FULL, "alter table {t} alter c type citext", ROWS), made=MADE
    ),
    "citext_array": Story(  # the server writes arrays anew
        (ROWS, "alter table {t} alter cs type text[]", FULL, ROWS), "columns", MADE
    ),
    "citext_key": Story((BY_CASE, "alter table {t} alter c type text", BOTH_CASES, BY_CASE), made=KEYED),
    "citext_key_of_whole_rows": Story(
        (BY_CASE, "alter table {t} alter c type text", BOTH_CASES, BY_CASE),
        made=KEYED + "; alter table {t} replica identity full",
    ),
    "text_key": Story(
        (BY_CASE, BOTH_CASES, "delete from {t} where n = 60", "alter table {t} alter c type citext", BY_CASE),
        made=KEYED.replace("citext", "text"),
    ),
    "domains_to_their_base": Story(
        (DOMAIN_ROWS, "alter table {t} alter w type citext, alter i type int", DOMAIN_ROWS), made=DOMAINS
    ),
    "domains_of_citext_to_text": Story((DOMAIN_ROWS, "alter table {t} alter w type text", DOMAIN_ROWS), made=DOMAINS),
    "hstore_to_jsonb": Story(
        (
            ROWS,
            "alter table {t} alter h type jsonb using h::jsonb",
            "update {t} set h = '{{\"a\": 1}}' where id = 3",
            ROWS,
        ),
        "columns",
        MADE,
    ),
    "ltree_to_text": Story((ROWS, "alter table {t} alter l type text", FULL, ROWS), "columns", MADE),
    "renamed": Story((ROWS, "alter table {t} rename c to h_; alter table {t} rename h to c", ROWS), made=MADE),
    "added": Story(  # Iceberg has no defaults of maps
        (
            ROWS,
            "alter table {t} add c citext default 'Given', add h hstore default 'k=>v', add l ltree default 'a.b'",
            "update {t} set c = 'Other', h = 'x=>y', l = 'c.d' where id < 4",
            ROWS,
        ),
        "columns",
        EARLY,
    ),
    "composite_of_it": Story(
        (
            ROWS,
            "create type {t}_pair as (c citext, h hstore); alter table {t} add p {t}_pair",
            "update {t} set p = row('Some', 'a=>b') where id < 4",
            ROWS,
        ),
        made=EARLY,
    ),
    "of_a_window": Story(
        (
            ROWS,
            "create extension seg; alter table {t} add u seg default '1'; update {t} set u = '2 .. 3' where id = 3",
            "alter table {t} alter u drop default, alter u type text; drop extension seg",
            ROWS,
        ),
        "columns",
        EARLY,
    ),
}


def install(env: PipelineEnv) -> None:
    """Install what the tables need, or skip the test."""
    there = {name for (name,) in env.sql("select name from pg_available_extensions")}
    if not there.issuperset((*EXTENSIONS, "seg")):
        pytest.skip("this server has no extensions of PostgreSQL's contrib")
    env.sql("; ".join(f"create extension {name}" for name in EXTENSIONS))


@pytest.mark.parametrize("trigger", [False, True], ids=["without_the_trigger", "with_the_trigger"])
def test_columns_of_extension_types_are_followed(env: PipelineEnv, trigger: bool) -> None:
    install(env)

    found = tell(env, STORIES, MADE, trigger=trigger)

    assert wrong(env) == []
    assert unlike(STORIES, found, trigger=trigger) == {}


def test_an_extension_that_is_moved_or_dropped_takes_its_columns_along(env: PipelineEnv) -> None:
    install(env)
    stories = {
        "moved": Story(
            (
                ROWS,
                "create schema far; alter extension citext set schema far",
                "update {t} set c = 'Moved' where id = 4",
                ROWS,
            )
        ),
        "dropped": Story(
            (
                ROWS,
                "drop extension hstore cascade; drop extension ltree cascade",
                "update {t} set a = 'x' where id = 4",
                ROWS,
            )
        ),
    }

    found = tell(env, stories, MADE, trigger=False)

    assert wrong(env) == []
    assert unlike(stories, found, trigger=False) == {}
