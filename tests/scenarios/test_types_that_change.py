"""Types of a schema's own that change under a table: domains, enums, composites, ranges, extension types, and types that are soon gone."""

import pytest

from tests.pipeline_env import PipelineEnv
from tests.scenarios.stories import Story, tell, unlike, wrong

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MADE = """
create domain {t}_dom as varchar(20) check (length(value) < 15); create domain {t}_doms as {t}_dom;
create type {t}_mood as enum ('sad', 'ok', 'happy'); create domain {t}_face as {t}_mood;
create type {t}_in as (m {t}_mood, k int); create type {t}_spot as (x int, y text, i {t}_in);
create type {t}_span as range (subtype = int4);
create table {t}_other (p int, q text);
create table {t} (id int primary key, a text, v varchar(30), d {t}_dom, ds {t}_doms, m {t}_mood, ms {t}_mood[], f {t}_face, i {t}_in,
  s {t}_spot, ss {t}_spot[], r {t}_span, o {t}_other, n int);
insert into {t} select n, 'a' || n, 'v' || n, 'd' || n, 'e' || n, (array['sad', 'ok', 'happy'])[1 + n % 3]::{t}_mood, '{{sad,ok}}', 'sad',
  row('sad'::{t}_mood, n)::{t}_in, row(n, 'y', row('ok'::{t}_mood, n)::{t}_in)::{t}_spot,
  array[row(n, 'z', row('sad'::{t}_mood, n)::{t}_in)::{t}_spot], {t}_span(n, n + 5), row(n, 'q')::{t}_other, n
from generate_series(1, 20) n
"""
BEFORE = "update {t} set a = 'before' where id between 1 and 6; delete from {t} where id = 7; update {t} set id = 108 where id = 8"
ROWS = "update {t} set n = n + 100 where id between 4 and 12; insert into {t} (id, m, d) values (200, 'ok', 'new')"
AFTER = "update {t} set a = 'after' where id between 10 and 14; delete from {t} where id = 15; update {t} set id = 116 where id = 16"


def change(*texts: str, rows: str = ROWS) -> tuple[str, ...]:
    """Return a change with rows before it, after it in its transaction, and later."""
    return (BEFORE, "begin", "update {t} set n = -n where id = 9", *texts, rows, "commit", AFTER)


DOMAINS = {
    "domain_renamed": Story(change("alter domain {t}_dom rename to {t}_word")),
    "domain_checked": Story(
        change(
            "alter domain {t}_dom add check (value <> 'x'); alter domain {t}_dom set default 'none'",
            "alter domain {t}_doms drop not null; alter table {t} alter d set not null",
        )
    ),
    "domain_moved": Story(change("create schema {t}_far; alter domain {t}_dom set schema {t}_far")),
    "base_to_domain": Story(change("create domain {t}_w as varchar(30); alter table {t} alter v type {t}_w")),
    "domain_to_base": Story(change("alter table {t} alter ds type varchar(20); drop domain {t}_doms"), "columns"),
    "domain_of_domain": Story(change("alter table {t} alter ds type {t}_dom"), "columns"),
    "another_base": Story(
        change(
            "alter domain {t}_dom rename to {t}_old; create domain {t}_dom as int",
            "alter table {t} alter d type {t}_dom using length(d)",
            rows=ROWS.replace("'new'", "5"),
        ),
        "columns",
    ),
    "dropped_with_it": Story(change("drop domain {t}_doms cascade; drop domain {t}_face cascade")),
}
ENUMS = {
    "label_added": Story(
        (
            BEFORE,
            "alter type {t}_mood add value 'glad' after 'ok'",
            "update {t} set m = 'glad', ms = '{{glad,ok}}', f = 'glad', i = row('glad', 1), s = row(1, 'x', row('glad', 2)) where id < 5",
            AFTER,
        ),
    ),
    "label_renamed": Story(
        change(
            "alter type {t}_mood rename value 'sad' to 'blue'",
            "update {t} set m = 'blue', ms = '{{blue}}' where id = 3",
        ),
        "columns",
    ),
    "labels_swapped": Story(
        change(
            "alter type {t}_mood rename value 'sad' to 'x'",
            "update {t} set m = 'x' where id = 4",
            "alter type {t}_mood rename value 'ok' to 'sad'; alter type {t}_mood rename value 'x' to 'ok'",
        ),
        "columns",
    ),
    "label_there_and_back": Story(
        change(
            "alter type {t}_mood rename value 'sad' to 'x'",
            "update {t} set m = 'x', f = 'x' where id = 4",
            "alter type {t}_mood rename value 'x' to 'sad'",
        ),
        "columns",
    ),
    "enum_renamed": Story(change("alter type {t}_mood rename to {t}_m; create type {t}_mood as enum ('other')")),
    "enum_to_text": Story(change("alter table {t} alter m type text"), "columns"),
    "enum_to_enum": Story(
        change(
            "create type {t}_n as enum ('sad', 'ok', 'happy', 'new')",
            "alter table {t} alter m type {t}_n using m::text::{t}_n",
        ),
        "columns",
    ),
    "enum_gone": Story(change("drop type {t}_mood cascade", rows=ROWS.replace("id, m, d", "id, a, d")), "columns"),
}
COMPOSITES = {
    "attribute_added": Story(change("alter type {t}_spot add attribute z int cascade"), "columns"),
    "attribute_dropped": Story(change("alter type {t}_spot drop attribute y cascade"), "columns"),
    "attribute_renamed": Story(change("alter type {t}_in rename attribute k to l cascade")),
    "attribute_there_and_back": Story(
        change("alter type {t}_in add attribute x int cascade", "alter type {t}_in drop attribute x cascade"), "columns"
    ),
    "attribute_another": Story(
        change(
            "alter type {t}_in drop attribute k cascade",
            "alter type {t}_in add attribute k int cascade",
            "update {t} set i = row('ok', 77) where id = 17",
        ),
        "columns",
    ),
    "attributes_swap_names": Story(
        change(
            "alter type {t}_spot rename attribute x to z cascade; alter type {t}_spot rename attribute y to x cascade",
            "update {t} set s = row(3, 'swapped', null) where id = 18",
        )
    ),
    "attribute_retyped": Story(
        change("alter type {t}_unused alter attribute k type bigint cascade"),
        made=MADE + "; create type {t}_unused as (k int)",
    ),
    "row_type": Story(
        change("alter table {t}_other add column w int", "alter table {t}_other rename q to z"), "columns"
    ),
    "composite_renamed": Story(
        change("alter type {t}_spot rename to {t}_place; alter type {t}_in rename to {t}_inner")
    ),
    "composite_gone": Story(change("drop type {t}_in cascade"), "columns"),
    "range_renamed": Story(change("alter type {t}_span rename to {t}_r")),
    "range_retyped": Story(
        change("alter table {t} alter r type int8range using int8range(lower(r), upper(r))"), "columns"
    ),
}
PASSING = {
    "enum_of_a_window": Story(
        (
            BEFORE,
            "create type {t}_e as enum ('x', 'y'); alter table {t} add e {t}_e, add es {t}_e[]",
            "update {t} set e = 'x', es = '{{x,y}}' where id < 5; insert into {t} (id, e) values (201, 'y')",
            "alter table {t} drop e, drop es; drop type {t}_e",
            AFTER,
        ),
        "copy",
        with_trigger="metadata",
    ),
    "composite_of_a_window": Story(
        (
            BEFORE,
            "begin",
            "create type {t}_c as (x int); create domain {t}_cd as {t}_c; alter table {t} add c {t}_cd default row(5)",
            "update {t} set c = row(1) where id < 5; insert into {t} (id) values (201)",
            "alter table {t} alter c type text using c::text; drop type {t}_c cascade",
            "commit",
            AFTER,
        ),
        "columns",
    ),
    "retyped_and_back": Story(
        (
            BEFORE,
            "create type {t}_e as enum ('v1', 'v2'); update {t} set v = 'v1'",
            "alter table {t} alter v type {t}_e using v::{t}_e; update {t} set v = 'v2' where id = 3",
            "alter table {t} alter v type varchar(30); drop type {t}_e; update {t} set v = 'free' where id = 4",
            AFTER,
        ),
        "columns",
    ),
}


@pytest.mark.parametrize("trigger", [False, True], ids=["without_the_trigger", "with_the_trigger"])
def test_types_of_its_own_change_under_a_table(env: PipelineEnv, trigger: bool) -> None:
    stories = {**DOMAINS, **ENUMS, **COMPOSITES, **PASSING}
    env.settings["tables"] = {"include": ["public.*"], "exclude": ["public.*_other"]}

    found = tell(env, stories, MADE, trigger=trigger)

    assert wrong(env) == []
    assert unlike(stories, found, trigger=trigger) == {}
