"""The tables of stories: whatever happens to a table within one window, the lake equals the source, at the cost that the rules promise."""

import re
from collections.abc import Iterator

import pytest

from penstock.flow.capture import run as capture
from penstock.flow.load import run as rebuild
from penstock.lsn import Lsn
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import adopt
from tests.scenarios.stories import Group, begin, catch_up, costs, happen, table, tell, wanted

pytestmark = pytest.mark.spark


def edges(row: re.Match[str]) -> str:
    number, change = row.groups()
    return (
        f"update {{t}} set {change} where id = {number}; update {{t}} set id = id + 100 where id = {number}; "
        f"insert into {{t}} (id) values ({number} + 200)"
    )


# Changes that look like lost rows or values and are none: empty partitions, truncated tables, generated columns, new files.

PLAIN = "create table {t} (id int primary key, n int); insert into {t} select i, i from generate_series(1, 20) i"
PARTS = """
create table {t} (id int primary key, n int) partition by range (id);
create table {t}_a partition of {t} for values from (0) to (100);
create table {t}_b partition of {t} for values from (100) to (200);
insert into {t} select i, i from generate_series(1, 190) i
"""
GENERATED = "create table {t} (id int, n int, g int generated always as (n * 2) stored, primary key (id))"
GENERATED_ROWS = "insert into {t} values (9, 9), (10, 10)"
V = "create table {t} (id int primary key, v text); insert into {t} values (1, 'a')"
V_PARTS = (
    "create table {t} (id int primary key, v text) partition by range (id); "
    "create table {t}_a partition of {t} for values from (0) to (100); insert into {t} values (1, 'a')"
)
SILENT_WORDS = {
    "ATTACH": "create table {t}_c (like {t} including all); alter table {t} attach partition {t}_c for values "
    "from (200) to (300)",
    "ROWS": "insert into {t} (id, n) values (7, 7), (150, 1); update {t} set n = n + 1 where id = 7",
    "LATER": "insert into {t} (id, n) values (195, 7), (220, 1); update {t} set n = n + 1 where id = 7",
    "RETYPED": "alter table {t} alter g type bigint / update {t} set n = 5 where id = 9",
    "EXPRESSION": "alter table {t} alter g set expression as (n * 3) / update {t} set n = 5 where id = 9",
    "REFILLED": "begin / truncate {t} / insert into {t} values (7, 7), (150, 1)",
    "SEVEN": "begin / truncate {t} / insert into {t} values (7, 'seven')",
    "UPPER": "alter table {t} alter v type text using upper(v)",
    "RANDOM": "alter table {t} add x float default random() / commit / alter table {t} alter x set statistics 5",
    "PARTS": PARTS,
    "V_PARTS": V_PARTS,
    "WITH_G": f"{GENERATED}; {GENERATED_ROWS}",
    "G_PARTS": f"{GENERATED} partition by range (id); create table {{t}}_a partition of {{t}} for values from (0) to (100); {GENERATED_ROWS}",
}
SILENT = table(
    PLAIN,
    SILENT_WORDS,
    {
        "attached_and_truncated": "[leaves PARTS] ATTACH / truncate {t} / ROWS",
        "attached_filled_truncated": "[leaves PARTS] ATTACH / insert into {t} values (250, 1) / truncate {t} / ROWS",
        "truncated_and_attached": "[leaves PARTS] truncate {t} / ATTACH / insert into {t} values (250, 1) / ROWS",
        "attached_then_filled": "[leaves PARTS] ATTACH / insert into {t} values (250, 1) / LATER",
        "added_and_truncated": "alter table {t} add x int / truncate {t} / ROWS / update {t} set x = 1",
        "added_default_truncated": "alter table {t} add x int default 5 / truncate {t} / ROWS / "
        "update {t} set x = 1 where id = 7",
        "truncated_and_added": "truncate {t} / ROWS / alter table {t} add x int default 5 / "
        "update {t} set x = 1 where id = 7",
        "added_truncated_parts": "[metadata PARTS] alter table {t} add x int default 5 / truncate {t} / ROWS",
        "generated_added": "alter table {t} add g int generated always as (n * 2) stored / "
        "update {t} set n = 5 where id = 9 / insert into {t} (id, n) values (50, 1)",
        "generated_added_parts": "[copy PARTS] alter table {t} add g int generated always as (n * "
        "2) stored / update {t} set n = 5 where id = 9",
        "generated_retyped_parts": "[copy G_PARTS] RETYPED",
        "generated_retyped": "[metadata WITH_G] RETYPED",
        "expression_parts": "[copy G_PARTS since 17] EXPRESSION",
        "expression": "[metadata WITH_G since 17] EXPRESSION",
    },
)
REFILLED = table(
    V,
    SILENT_WORDS,
    {
        "leaf_truncated_too": "[copy PARTS] REFILLED / truncate {t}_a / commit",
        "unlogged_too": "[copy PARTS] begin / truncate {t} / alter table {t}_a set unlogged / "
        "insert into {t} values (7, 7) / alter table {t}_a set logged / commit",
        "as_many_by_chance": "[copy PARTS] REFILLED / truncate {t}_a / alter table {t}_b set unlogged / "
        "insert into {t} values (151, 1) / alter table {t}_b set logged / commit",
        "same_keys_other_values": "[copy PARTS] REFILLED / alter table {t}_b set unlogged / "
        "update {t} set n = 2 where id = 150 / alter table {t}_b set logged / commit",
        "reloaded": "[metadata PARTS] REFILLED / commit",
        "reloaded_plain": "begin / truncate {t} / insert into {t} values (7, 'x') / commit / update {t} set v = 'y'",
        "upper": "[columns] SEVEN / UPPER / commit / alter table {t} alter v set statistics 5",
        "upper_parts": "[copy V_PARTS] SEVEN / UPPER / commit / alter table {t} alter v set statistics 5",
        "added": "[columns] SEVEN / RANDOM",
        "added_parts": "[copy V_PARTS] SEVEN / RANDOM",
        "altered_before": "UPPER / truncate {t} / insert into {t} values (7, 'seven')",
    },
)
"""A truncate explains no file where its transaction wrote rows that were changed silently."""

# Columns of types that an extension brings, before and after these types are installed, moved or dropped; 15 and 18 have the extensions.

EXTENSIONS = ("citext", "hstore", "ltree")
EXTENDED = """
create table {t} (id int primary key, a text, c citext, cs citext[], h hstore, l ltree, n int);
insert into {t} select i, 'a' || i, 'C' || i, array['X', 'y']::citext[], hstore('k' || i, 'v'), ('a.b' || i)::ltree, i from generate_series(1, 20) i
"""
KEYED = (
    "create table {t} (c citext primary key, n int); insert into {t} select 'K' || i, i from generate_series(1, 20) i"
)
EXTENSION_WORDS = {
    "ROWS": "update {t} set n = n + 1 where n % 3 = 0; delete from {t} where n = 5; update {t} set id = id + 100 "
    "where n = 8",
    "FULL": "insert into {t} values (50, 'new', 'New', '{{A,b}}', 'x=>1, y=>null', 'a.b.c', 50)",
    "BY_CASE": "update {t} set c = lower(c::text) where n in (3, 4); update {t} set n = n + 20 where n in (3, "
    "5); delete from {t} where n = 6; insert into {t} values ('k6', 6)",
    "BOTH_CASES": "insert into {t} values ('k9', 60); update {t} set n = n + 1000 where c = 'K9'",
    "DOMAIN_ROWS": "update {t} set w = 'x' || w::text, i = i + 1 where i % 3 = 0; delete from {t} where id = "
    "(select min(id) from {t})",
    "EARLY": "create table {t} (id int primary key, a text, n int); insert into {t} select i, 'a' || i, i from "
    "generate_series(1, 20) i",
    "DOMAINS": "create domain {t}_w as citext; create domain {t}_i as int; create table {t} (id int primary key, "
    "w {t}_w, i {t}_i); insert into {t} select i, 'W' || i, i from generate_series(1, 20) i",
    "BY_CITEXT": KEYED,
    "BY_WHOLE_ROWS": KEYED + "; alter table {t} replica identity full",
    "BY_TEXT": KEYED.replace("citext", "text"),
}
EXTENDED_TYPES = table(
    EXTENDED,
    EXTENSION_WORDS,
    {
        "text_to_citext": "ROWS / alter table {t} alter a type citext / FULL / ROWS",
        "citext_to_text": "ROWS / alter table {t} alter c type text / FULL / ROWS",
        "there_and_back": "ROWS / alter table {t} alter c type text / FULL / alter table {t} alter c type citext "
        "/ ROWS",
        "citext_array": "[columns] ROWS / alter table {t} alter cs type text[] / FULL / ROWS",
        "citext_key": "[metadata BY_CITEXT] BY_CASE / alter table {t} alter c type text / BOTH_CASES / BY_CASE",
        "citext_key_of_whole_rows": "[metadata BY_WHOLE_ROWS] BY_CASE / alter table {t} alter c type text / "
        "BOTH_CASES / BY_CASE",
        "text_key": "[metadata BY_TEXT] BY_CASE / BOTH_CASES / delete from {t} where n = 60 / "
        "alter table {t} alter c type citext / BY_CASE",
        "domains_to_their_base": "[metadata DOMAINS] DOMAIN_ROWS / alter table {t} alter w type citext, alter i "
        "type int / DOMAIN_ROWS",
        "domains_of_citext_to_text": "[metadata DOMAINS] DOMAIN_ROWS / alter table {t} alter w type text / DOMAIN_ROWS",
        "hstore_to_jsonb": "[columns] ROWS / alter table {t} alter h type jsonb using h::jsonb / "
        "update {t} set h = '{{\"a\": 1}}' where id = 3 / ROWS",
        "ltree_to_text": "[columns] ROWS / alter table {t} alter l type text / FULL / ROWS",
        "renamed": "ROWS / alter table {t} rename c to h_; alter table {t} rename h to c / ROWS",
        "added": "[columns EARLY] ROWS / alter table {t} add c citext default 'Given', add h hstore default "
        "'k=>v', add l ltree default 'a.b' / update {t} set c = 'Other', h = 'x=>y', l = 'c.d' where id < 4 / ROWS",
        "composite_of_it": "[metadata EARLY] ROWS / create type {t}_pair as (c citext, h hstore); alter table {t} "
        "add p {t}_pair / update {t} set p = row('Some', 'a=>b') where id < 4 / ROWS",
        "of_a_window": "[columns EARLY] ROWS / create extension seg; alter table {t} add u seg default '1'; "
        "update {t} set u = '2 .. 3' where id = 3 / alter table {t} alter u drop default, alter u type text; drop "
        "extension seg / ROWS",
    },
)
EXTENSION_MOVED = table(
    EXTENDED,
    EXTENSION_WORDS,
    {
        "moved": "ROWS / create schema far; alter extension citext set schema far / "
        "update {t} set c = 'Moved' where id = 4 / ROWS",
        "dropped": "ROWS / drop extension hstore cascade; drop extension ltree cascade / "
        "update {t} set a = 'x' where id = 4 / ROWS",
    },
)

# Types of a schema's own that change under a table: domains, enums, composites, ranges, extension types, and types that are soon gone.

TYPED = """
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
TYPE_WORDS = {
    "ROWS": "update {t} set n = n + 100 where id between 4 and 12; insert into {t} (id, m, d) values (200, 'ok', "
    "'new')",
    "BEFORE": "update {t} set a = 'before' where id between 1 and 6; delete from {t} where id = 7; update {t} "
    "set id = 108 where id = 8",
    "AFTER": "update {t} set a = 'after' where id between 10 and 14; delete from {t} where id = 15; update {t} "
    "set id = 116 where id = 16",
    "MORE": TYPED + "; create type {t}_unused as (k int)",
}
TYPE_WORDS |= {
    "FIRST": f"{TYPE_WORDS['BEFORE']} / begin / update {{t}} set n = -n where id = 9",
    "LAST": f"{TYPE_WORDS['ROWS']} / commit / {TYPE_WORDS['AFTER']}",
}
TYPES = table(
    TYPED,
    TYPE_WORDS,
    {
        "domain_renamed": "FIRST / alter domain {t}_dom rename to {t}_word / LAST",
        "domain_checked": "FIRST / alter domain {t}_dom add check (value <> 'x'); alter domain {t}_dom set "
        "default 'none' / alter domain {t}_doms drop not null; alter table {t} alter d set not null / LAST",
        "domain_moved": "FIRST / create schema {t}_far; alter domain {t}_dom set schema {t}_far / LAST",
        "base_to_domain": "FIRST / create domain {t}_w as varchar(30); alter table {t} alter v type {t}_w / LAST",
        "domain_to_base": "[columns] FIRST / alter table {t} alter ds type varchar(20); drop domain {t}_doms / LAST",
        "domain_of_domain": "[columns] FIRST / alter table {t} alter ds type {t}_dom / LAST",
        "another_base": "[columns] FIRST / alter domain {t}_dom rename to {t}_old; create domain {t}_dom as int / "
        "alter table {t} alter d type {t}_dom using length(d) / update {t} set n = n + 100 where id between 4 and "
        "12; insert into {t} (id, m, d) values (200, 'ok', 5) / commit / AFTER",
        "dropped_with_it": "FIRST / drop domain {t}_doms cascade; drop domain {t}_face cascade / LAST",
        "label_added": "BEFORE / alter type {t}_mood add value 'glad' after 'ok' / "
        "update {t} set m = 'glad', ms = '{{glad,ok}}', f = 'glad', i = row('glad', 1), s = row(1, 'x', "
        "row('glad', 2)) where id < 5 / AFTER",
        "label_renamed": "[columns] FIRST / alter type {t}_mood rename value 'sad' to 'blue' / "
        "update {t} set m = 'blue', ms = '{{blue}}' where id = 3 / LAST",
        "labels_swapped": "[columns] FIRST / alter type {t}_mood rename value 'sad' to 'x' / "
        "update {t} set m = 'x' where id = 4 / alter type {t}_mood rename value 'ok' to 'sad'; alter type {t}_mood "
        "rename value 'x' to 'ok' / LAST",
        "label_there_and_back": "[columns] FIRST / alter type {t}_mood rename value 'sad' to 'x' / "
        "update {t} set m = 'x', f = 'x' where id = 4 / alter type {t}_mood rename value 'x' to 'sad' / LAST",
        "enum_renamed": "FIRST / alter type {t}_mood rename to {t}_m; create type {t}_mood as enum ('other') / LAST",
        "enum_to_text": "[columns] FIRST / alter table {t} alter m type text / LAST",
        "enum_to_enum": "[columns] FIRST / create type {t}_n as enum ('sad', 'ok', 'happy', 'new') / "
        "alter table {t} alter m type {t}_n using m::text::{t}_n / LAST",
        "enum_gone": "[columns] FIRST / drop type {t}_mood cascade / update {t} set n = n + 100 where id between "
        "4 and 12; insert into {t} (id, a, d) values (200, 'ok', 'new') / commit / AFTER",
        "attribute_added": "[columns] FIRST / alter type {t}_spot add attribute z int cascade / LAST",
        "attribute_dropped": "[columns] FIRST / alter type {t}_spot drop attribute y cascade / LAST",
        "attribute_renamed": "FIRST / alter type {t}_in rename attribute k to l cascade / LAST",
        "attribute_there_and_back": "[columns] FIRST / alter type {t}_in add attribute x int cascade / "
        "alter type {t}_in drop attribute x cascade / LAST",
        "attribute_another": "[columns] FIRST / alter type {t}_in drop attribute k cascade / "
        "alter type {t}_in add attribute k int cascade / update {t} set i = row('ok', 77) where id = 17 / LAST",
        "attributes_swap_names": "FIRST / alter type {t}_spot rename attribute x to z cascade; alter type "
        "{t}_spot rename attribute y to x cascade / update {t} set s = row(3, 'swapped', null) where id = 18 / LAST",
        "attribute_retyped": "[metadata MORE] FIRST / alter type {t}_unused alter attribute k type bigint cascade "
        "/ LAST",
        "row_type": "[columns] FIRST / alter table {t}_other add column w int / "
        "alter table {t}_other rename q to z / LAST",
        "composite_renamed": "FIRST / alter type {t}_spot rename to {t}_place; alter type {t}_in rename to "
        "{t}_inner / LAST",
        "composite_gone": "[columns] FIRST / drop type {t}_in cascade / LAST",
        "range_renamed": "FIRST / alter type {t}_span rename to {t}_r / LAST",
        "range_retyped": "[columns] FIRST / alter table {t} alter r type int8range using int8range(lower(r), "
        "upper(r)) / LAST",
        "enum_of_a_window": "[copy, told metadata] BEFORE / create type {t}_e as enum ('x', 'y'); alter table {t} "
        "add e {t}_e, add es {t}_e[] / update {t} set e = 'x', es = '{{x,y}}' where id < 5; insert into {t} (id, "
        "e) values (201, 'y') / alter table {t} drop e, drop es; drop type {t}_e / AFTER",
        "composite_of_a_window": "[columns] BEFORE / begin / create type {t}_c as (x int); create domain {t}_cd "
        "as {t}_c; alter table {t} add c {t}_cd default row(5) / update {t} set c = row(1) where id < 5; insert "
        "into {t} (id) values (201) / alter table {t} alter c type text using c::text; drop type {t}_c cascade / "
        "commit / AFTER",
        "retyped_and_back": "[columns] BEFORE / create type {t}_e as enum ('v1', 'v2'); update {t} set v = 'v1' / "
        "alter table {t} alter v type {t}_e using v::{t}_e; update {t} set v = 'v2' where id = 3 / "
        "alter table {t} alter v type varchar(30); drop type {t}_e; update {t} set v = 'free' where id = 4 / AFTER",
    },
)

# What happens to a table within one window: rows that keep large values, keys, partitions, names.

LARGE_ROWS = """
create table {t} (id int primary key, a text, b text, c text, n int, code text not null unique);
alter table {t} alter b set storage external; alter table {t} alter c set storage external;
insert into {t} select i, 'a' || i, repeat('b' || i, 2000), repeat('c' || i, 2000), i, 'c' || i from generate_series(1, 20) i
"""
NEW = (
    "insert into {t} select i, 'new', repeat('B' || i, 2000), repeat('C' || i, 2000), i, 'c' || i from "
    "generate_series(30, 39) i"
)
TOUCH = (
    "update {t} set n = n + 1 where n % 2 = 0; update {t} set id = id + 500 where n in (5, 31); delete from {t} "
    "where n = 33"
)
PARTED = """
create table {t} (id int, b text, n int, code text not null, primary key (id)) partition by range (id);
alter table {t} alter b set storage external;
create table {t}_1 partition of {t} for values from (0) to (20); create table {t}_2 partition of {t} for values from (20) to (40);
create table {t}_3 partition of {t} for values from (40) to (60);
insert into {t} select i, repeat('b' || i, 2000), i, 'c' || i from generate_series(1, 59, 2) i;
create table {t}_9 (like {t} including all); insert into {t}_9 select i, 'b', i, 'c' || i from generate_series(90, 99) i
"""
WINDOW_WORDS = {
    "NEW": NEW,
    "NEXT": NEW.replace("3", "6"),
    "SHORT": NEW.replace("'new', ", ""),
    "TOUCH": TOUCH,
    "GREEN": TOUCH.replace("{t}", "swapped_green"),
    "BLUE": TOUCH.replace("{t}", "swapped_blue"),
    "BY_CODE": "alter table {t} drop constraint {t}_pkey, add primary key (code)",
    "PARTS": "update {t} set n = n + 1 where n % 4 = 0; update {t} set n = n - 1 where n % 4 = 3; update {t} set "
    "id = id + 21 where id = 5",
    "PARTED": PARTED,
}
LARGE = table(
    LARGE_ROWS,
    WINDOW_WORDS,
    {
        "column_added": "NEW / alter table {t} add x text default 'x' / TOUCH / update {t} set x = 'y' where n > 10",
        "large_added": "NEW / alter table {t} add x text / update {t} set x = repeat('x', 9000) where n > 35 / TOUCH",
        "renamed": "NEW / alter table {t} rename b to large / TOUCH / begin / NEXT / "
        "alter table {t} rename c to d / TOUCH / commit",
        "swapped": "NEW / begin / TOUCH / alter table {t} rename b to x / alter table {t} rename c to b; alter "
        "table {t} rename x to c / TOUCH / commit",
        "large_dropped": "NEW / TOUCH / alter table {t} drop b / TOUCH",
        "another_dropped": "NEW / alter table {t} drop a / TOUCH / alter table {t} rename c to a / TOUCH",
        "dropped_and_added": "NEW / TOUCH / alter table {t} drop b / TOUCH / alter table {t} add b text / "
        "update {t} set b = repeat('z', 9000) where n > 34 / TOUCH",
        "key_changed": "NEW / TOUCH / BY_CODE / TOUCH / update {t} set code = 'm' || code where n > 30 / TOUCH",
        "key_and_name": "NEW / begin / TOUCH / BY_CODE / alter table {t} rename b to large; alter table {t} "
        "rename code to b / update {t} set b = 'm' || b where n > 30 / TOUCH / commit",
        "whole_rows": "NEW / TOUCH / alter table {t} replica identity full / TOUCH / "
        "alter table {t} rename b to x / TOUCH / alter table {t} replica identity default / TOUCH",
        "truncated": "NEW / begin / TOUCH / truncate {t} / alter table {t} add x int default 3, drop a / "
        "SHORT / TOUCH / commit / TOUCH",
        "wider": "[columns, told metadata] NEW / alter table {t} alter n type bigint / TOUCH / "
        "update {t} set n = 5000000001 where n = 37 / TOUCH",
        "renamed_truncated": "[columns, told metadata] NEW / begin / alter table {t} rename b to x / "
        "truncate {t} / NEW / commit / TOUCH",
        "truncated_twice": "[columns, told metadata] NEW / begin / truncate {t} / NEW / "
        "alter table {t} alter n type bigint / truncate {t} / NEW / TOUCH / commit / TOUCH",
        "wider_key": "[copy, told metadata] NEW / TOUCH / alter table {t} alter id type bigint / TOUCH / "
        "update {t} set id = 5000000001 where id = 35 / TOUCH",
        "large_retyped": "[columns] NEW / alter table {t} alter b type text using b || 'x' / TOUCH",
        "fetched": "[columns] NEW / TOUCH / alter table {t} add u uuid default gen_random_uuid() / TOUCH / "
        "alter table {t} rename b to x / TOUCH",
    },
)
"""Rows of before and of the window itself, updated without their large values, before and after the table changed."""
TREES = table(
    LARGE_ROWS,
    WINDOW_WORDS,
    {
        "attached": "[leaves PARTED] PARTS / alter table {t} attach partition {t}_9 for values from (90) to (100) "
        "/ PARTS",
        "attached_and_renamed": "[leaves PARTED] PARTS / alter table {t} attach partition {t}_9 for values from "
        "(90) to (100) / alter table {t} rename b to x / PARTS",
        "dropped": "[metadata PARTED] PARTS / drop table {t}_2 / PARTS",
        "detached": "[metadata PARTED] PARTS / alter table {t} detach partition {t}_2 / update {t}_2 set n = 0 / PARTS",
        "detached_slowly": "[metadata PARTED] PARTS / alter table {t} detach partition {t}_2 concurrently / "
        "update {t}_2 set n = 0 / PARTS",
        "truncated_leaf": "[metadata PARTED] PARTS / truncate {t}_2",
        "dropped_and_renamed": "[metadata PARTED] PARTS / alter table {t} rename b to x / PARTS / "
        "drop table {t}_3 / PARTS",
        "created": "[metadata PARTED] PARTS / create table {t}_4 partition of {t} for values from (60) to (80) / "
        "insert into {t} values (61, 'b', 4, 'x') / PARTS",
        "swapped_blue": "TOUCH / begin / alter table swapped_blue rename to x / "
        "alter table swapped_green rename to swapped_blue / alter table x rename to swapped_green / commit / GREEN",
        "swapped_green": "alter table swapped_blue rename a to was_green / BLUE",
    },
)

# Changes of columns that the lake follows by metadata, with rows that are written before, within and after their transaction.

COLUMNS_MADE = """
create table {t} (id int primary key, a text, b text, n numeric(10,2), v varchar(20), at timestamp(0));
alter table {t} alter column b set storage external;
insert into {t} select i, 'a' || i, repeat(i::text, 3000), i / 100.0, 'v' || i, '2026-01-01'::timestamp + i * interval '1 h'
from generate_series(1, 40) i
"""
COLUMN_WORDS = {
    "FIRST": "update {t} set a = 'before' where id between 1 and 10; delete from {t} where id = 11; update {t} "
    "set id = 112 where id = 12 / begin / update {t} set n = 1 where id = 14",
    "WITHIN": "update {t} set n = 0 where id between 13 and 16; insert into {t} (id) values (200)",
    "WITHIN_KEY": "update {t} set n = 0 where key between 13 and 16; insert into {t} (key) values (200)",
    "LAST": "commit / update {t} set n = n + 1 where id between 5 and 15; delete from {t} where id = 21; update "
    "{t} set id = 122 where id = 22",
    "LAST_KEY": "commit / update {t} set n = n + 1 where key between 5 and 15; delete from {t} where key = 21; "
    "update {t} set key = 122 where key = 22",
    "FULL": COLUMNS_MADE + "; alter table {t} replica identity full",
}
COLUMNS = table(
    COLUMNS_MADE,
    COLUMN_WORDS,
    {
        "renamed": "FIRST / alter table {t} rename column a to c / WITHIN / LAST",
        "swapped": "FIRST / alter table {t} rename column a to x; alter table {t} rename column b to a; alter "
        "table {t} rename column x to b / WITHIN / LAST",
        "key_renamed": "FIRST / alter table {t} rename column id to key / WITHIN_KEY / LAST_KEY",
        "dropped": "FIRST / alter table {t} drop column a / WITHIN / LAST",
        "large_dropped": "FIRST / alter table {t} drop column b / WITHIN / LAST",
        "added_again": "FIRST / alter table {t} drop column a; alter table {t} add column a int default 7 / "
        "WITHIN / LAST",
        "chained": "FIRST / alter table {t} drop column a; alter table {t} rename b to a; alter table {t} add b "
        "date / WITHIN / LAST",
        "varchar_50": "FIRST / alter table {t} alter column v type varchar(50) / WITHIN / LAST",
        "text": "FIRST / alter table {t} alter column v type text / WITHIN / LAST",
        "varchar": "FIRST / alter table {t} alter column a type varchar / WITHIN / LAST",
        "numeric_14": "FIRST / alter table {t} alter column n type numeric(14,2) / "
        "update {t} set n = 99999999999.99 where id = 13 / LAST",
        "finer": "FIRST / alter table {t} alter column at type timestamp(3) / "
        "update {t} set at = '2026-05-05 01:02:03.456' where id = 13 / LAST",
        "now_full": "FIRST / alter table {t} replica identity full / WITHIN / LAST",
        "not_full": "[metadata FULL] FIRST / alter table {t} replica identity default / WITHIN / LAST",
        "rest": "FIRST / alter table {t} alter column a set default 'x', alter v set statistics 7, add check (n > "
        "-1) / update {t} set n = 0 where id = 13 / LAST",
    },
)
COLUMNS_LATER = "update {t} set v = 'later' where n > 0"

# Changes of a table's key that the lake follows, with the rows that are written around them.

KEYS_MADE = """
create table {t} (id int primary key, code varchar(40) not null, large text, n int, unique (code));
alter table {t} alter column large set storage external;
insert into {t} select i, 'c' || i, repeat(i::text, 3000), i from generate_series(1, 40) i
"""
KEY_WORDS = {
    "BY_ID": "update {t} set n = -1 where id between 1 and 10; delete from {t} where id = 11; update {t} set id "
    "= 112 where id = 12; update {t} set code = 'before' where id = 13; insert into {t} values (201, 'c201', 'x', "
    "1), (202, 'c202', 'x', 1); delete from {t} where id = 202",
    "BY_CODE": "update {t} set n = n + 100 where code in ('c5', 'c9', 'c12', 'before', 'c201'); delete from {t} "
    "where code = 'c6'; update {t} set code = 'moved' where code = 'c14'; update {t} set id = id + 1000 where code "
    "in ('c15', 'c201'); update {t} set code = 'other' where code = 'c30'; update {t} set code = 'c30' where code "
    "= 'c31'; update {t} set code = 'c31' where code = 'other'; insert into {t} values (6, 'c6', 'again', 6), "
    "(203, 'c203', 'y', 2)",
    "LATE": "update {t} set n = 7 where code in ('c7', 'c203') / update {t} set code = 'late' where code = 'c9' "
    "/ delete from {t} where code = 'c8'",
    "LATE_BY_ID": "update {t} set n = 7 where id in (7, 16) / update {t} set id = 309 where id = 9 / "
    "delete from {t} where id = 8",
    "INSERTS": "insert into {t} values (301, 'c301', 'z', 3), (302, 'c302', repeat('z', 9000), 3)",
    "EQUAL_ROWS": "insert into {t} select 17, 'c17', 'equal', 17 from generate_series(1, 3); update {t} set n = "
    "18 where large = 'equal'; delete from {t} where ctid in (select ctid from {t} where large = 'equal' limit 2); "
    "update {t} set n = 5 where id = 20",
    "ONE_OF_EACH": "delete from {t} where large = 'equal'",
    "NO_KEY": "alter table {t} drop constraint {t}_pkey, drop constraint {t}_code_key",
    "BY_ROW": "alter table {t} replica identity full",
    "TO_CODE": "alter table {t} drop constraint {t}_pkey, add primary key (code)",
    "TO_ID": "alter table {t} drop constraint {t}_pkey, add primary key (id)",
    "BY_CODE_EACH": "update {t} set n = n + 100 where code in ('c5', 'c9', 'c12', 'before', 'c201') / "
    "delete from {t} where code = 'c6' / update {t} set code = 'moved' where code = 'c14' / "
    "update {t} set id = id + 1000 where code in ('c15', 'c201') / update {t} set code = 'other' where code = "
    "'c30' / update {t} set code = 'c30' where code = 'c31' / update {t} set code = 'c31' where code = 'other' / "
    "insert into {t} values (6, 'c6', 'again', 6), (203, 'c203', 'y', 2)",
    "INSERTS_LATER": "insert into {t} values (401, 'c401', 'z', 3), (402, 'c402', repeat('z', 9000), 3)",
    "FIRST": "begin; update {t} set n = 1 where id = 16",
    "ADDED": "alter table {t} add column u uuid default gen_random_uuid()",
    "RETYPED": "alter table {t} alter column n type bigint using n + 1000",
    "BY_WHOLE_ROW": f"{KEYS_MADE}; alter table {{t}} replica identity full",
    "WITHOUT_KEY": f"{KEYS_MADE}; alter table {{t}} drop constraint {{t}}_pkey, drop constraint {{t}}_code_key; alter table {{t}} replica identity full",
}
KEYS = table(
    KEYS_MADE,
    KEY_WORDS,
    {
        "code": "BY_ID / FIRST; TO_CODE; BY_CODE; commit / LATE",
        "code_at_the_end": "BY_ID / FIRST; BY_CODE; commit / TO_CODE",
        "index": "BY_ID / FIRST; alter table {t} replica identity using index {t}_code_key; BY_CODE; commit / LATE",
        "pair": "BY_ID / FIRST; alter table {t} drop constraint {t}_pkey, add primary key (id, code); BY_CODE; "
        "commit / LATE / LATE_BY_ID",
        "there_and_back": "BY_ID / FIRST; TO_CODE; BY_CODE; TO_ID; update {t} set n = -1 where id between 1 and "
        "10; delete from {t} where id = 11; update {t} set id = 112 where id = 12; update {t} set code = 'before' "
        "where id = 13; insert into {t} values (401, 'c401', 'x', 1), (402, 'c402', 'x', 1); delete from {t} where "
        "id = 402; commit / LATE_BY_ID",
        "rows": "BY_ID / FIRST; NO_KEY; BY_ROW; EQUAL_ROWS; BY_CODE; commit / LATE",
        "rows_and_back": "BY_ID / FIRST; NO_KEY; BY_ROW; EQUAL_ROWS; BY_CODE; commit / ONE_OF_EACH / "
        "alter table {t} add primary key (code), replica identity default / LATE",
        "from_rows": "[metadata WITHOUT_KEY] EQUAL_ROWS / FIRST; ONE_OF_EACH; alter table {t} add primary key "
        "(code); alter table {t} replica identity default; BY_CODE; commit / LATE",
        "whole": "[metadata BY_WHOLE_ROW] BY_ID / FIRST; TO_CODE; BY_CODE; commit / LATE",
        "made_again": "[metadata BY_WHOLE_ROW] BY_ID / FIRST; NO_KEY; EQUAL_ROWS; ONE_OF_EACH; alter table {t} "
        "add constraint {t}_pkey primary key (id); commit / LATE_BY_ID",
        "nothing": "BY_ID / FIRST; alter table {t} drop constraint {t}_pkey; INSERTS; commit / INSERTS_LATER",
        "nothing_and_back": "BY_ID / FIRST; alter table {t} drop constraint {t}_pkey; INSERTS; commit / "
        "alter table {t} add primary key (code) / BY_CODE_EACH",
        "dropped": "BY_ID / FIRST; alter table {t} drop column id, add primary key (code); update {t} set n = 4 "
        "where code in ('c5', 'c12'); delete from {t} where code = 'c6'; insert into {t} values ('c203', 'y', 2); "
        "commit / LATE",
        "renamed": "BY_ID / FIRST; TO_CODE; alter table {t} alter code type varchar(80), alter code set default "
        "'x'; BY_CODE; alter table {t} rename code to id_; alter table {t} rename id to code; alter table {t} "
        "rename id_ to id; commit / update {t} set n = 7 where id in ('c7', 'c203') / "
        "update {t} set id = 'late' where id = 'c9'",
        "new_column": "BY_ID / FIRST; alter table {t} add column k text; update {t} set k = 'k' || id; alter "
        "table {t} drop constraint {t}_pkey, add constraint {t}_pkey primary key (k); commit / "
        "update {t} set n = 8 where k = 'k7' / delete from {t} where k = 'k8'",
        "truncated": "BY_ID / FIRST; INSERTS; commit / truncate {t} / TO_CODE / INSERTS / "
        "update {t} set n = 9 where code = 'c301'",
    },
)
KEYS_AND_FETCHES = table(
    KEYS_MADE,
    KEY_WORDS,
    {
        "added_with_it": "[columns] BY_ID / begin; ADDED; TO_CODE; BY_CODE; commit / "
        "update {t} set n = 7 where code in ('c7', 'c203'); update {t} set code = 'late' where code = 'c9'; delete "
        "from {t} where code = 'c8'",
        "key_then_values": "[columns] BY_ID / TO_CODE / BY_CODE / RETYPED / update {t} set n = 7 where code in "
        "('c7', 'c203'); update {t} set code = 'late' where code = 'c9'; delete from {t} where code = 'c8'",
        "values_then_key": "[columns] BY_ID / RETYPED / update {t} set n = 3 where id in (14, 19) / TO_CODE / BY_CODE",
        "there_and_back": "[columns] BY_ID / TO_CODE / BY_CODE / ADDED / TO_ID / "
        "update {t} set n = 7 where id in (7, 16); update {t} set id = 309 where id = 9; delete from {t} where id = 8",
        "rolled_back": "[columns] BY_ID / begin; TO_CODE; BY_CODE; rollback / TO_CODE / ADDED / BY_CODE",
        "old_key_dropped": "[columns] BY_ID / TO_CODE / BY_CODE / alter table {t} drop column id / ADDED / "
        "delete from {t} where code = 'c8'",
        "by_a_new_column": "[copy] BY_ID / alter table {t} add k text; update {t} set k = 'k' || id / "
        "alter table {t} drop constraint {t}_pkey, add primary key (k) / RETYPED / "
        "update {t} set n = 4 where k = 'k17'; update {t} set k = 'moved' where k = 'k18'",
        "old_key_in_doubt": "[copy] BY_ID / alter table {t} alter id type bigint using id + 1 / TO_CODE / ADDED",
        "new_key_in_doubt": "[copy] BY_ID / alter table {t} alter code type text using code || 'x' / TO_CODE / ADDED",
    },
)
"""Keys that change while values of other columns are in doubt."""

KEYS_LATER = "update {t} set large = 'later' where code in ('c2', 'c20'); delete from {t} where code = 'c3'"

# Tables that are rewritten for wider types, with rows around it; the event trigger tells that no value changed.

REWRITTEN_MADE = """
create table {t} (id int primary key, s smallint, n int default 3, b text, l int[], a varchar(9), f real default 0.1);
alter table {t} alter column b set storage external;
insert into {t} select i, -i, i * 1000000, repeat(i::text, 3000), array[i, null, -i], 'a' || i, i / 7.0 from generate_series(1, 40) i;
alter table {t} add column d int default 5, add column r real default 0.7
"""
REWRITE_WORDS = {
    "FIRST": "update {t} set n = n + 1 where id between 1 and 10; delete from {t} where id = 11; update {t} set "
    "id = 112 where id = 12; insert into {t} (id) values (2147483647) / begin / update {t} set s = 1 where id = 14",
    "ROWS": "update {t} set n = n - 1, d = 6 where id between 8 and 16; insert into {t} (id) values (200); "
    "delete from {t} where id = 30",
    "AFTER": "update {t} set n = n + 2 where id between 5 and 15; delete from {t} where id = 21; update {t} set "
    "id = 122 where id = 22; delete from {t} where id = 2147483647; update {t} set id = 300 where id = 200",
    "WHOLE_ROWS": REWRITTEN_MADE + "; alter table {t} drop constraint {t}_pkey; alter table {t} replica identity full",
}
REWRITES = table(
    REWRITTEN_MADE,
    REWRITE_WORDS,
    {
        "the_key": "FIRST / alter table {t} alter column id type bigint / ROWS / commit / "
        "update {t} set id = 9223372036854775807 where id = 31 / AFTER",
        "others": "FIRST / -- in one statement\nALTER TABLE {t} ALTER n TYPE int8, ALTER s TYPE int;  / ROWS / "
        "commit / update {t} set n = 9223372036854775807, s = 100000 where id = 31 / AFTER",
        "reals": "FIRST / alter table {t} alter f type float8, alter column r type double precision / ROWS / "
        "commit / update {t} set f = case id when 31 then 0.1 when 32 then 'NaN' when 33 then '-Infinity' else "
        "1e300 end where id in (31, 32, 33, 34) / AFTER",
        "arrays": "FIRST / /* of them */ alter table {t} alter l type int8[] / ROWS / commit / "
        "update {t} set l = '{{9223372036854775807,NULL}}' where id = 31 / AFTER",
        "all_at_once": "FIRST / alter table {t} alter id type bigint, alter n type bigint, alter s type bigint, "
        "alter d type bigint, alter a type text / ROWS / commit / update {t} set d = 9223372036854775807, s = d "
        "where id = 31 / AFTER",
        "one_by_one": "FIRST / alter table {t} alter s type int / ROWS / commit / "
        "update {t} set n = n - 1, d = 6 where id between 8 and 16; insert into {t} (id) values (201); delete from "
        "{t} where id = 29 / alter table {t} rename column s to t / alter table {t} alter t type bigint / AFTER",
        "with_a_constraint": "FIRST / alter table {t} alter id type bigint, add check (n > 0), alter n set not "
        "null / ROWS / commit / AFTER",
        "whole_rows": "[metadata WHOLE_ROWS] FIRST / alter table {t} alter n type bigint, alter id type bigint, "
        "alter f type float8 / ROWS / commit / AFTER",
        "then_full": "FIRST / alter table {t} alter n type bigint / ROWS / commit / vacuum full {t} / AFTER",
    },
)
REWRITES_LATER = "update {t} set b = 'later' where id % 3 = 0; delete from {t} where id = 9223372036854775807"

# A publication of all tables: a rewritten table may have been unlogged, and the event trigger tells whether it was.

OF_ALL_MADE = (
    "create table {t} (id int primary key, s smallint, n int default 3, f real); "
    "insert into {t} select i, i, i, i / 7.0 from generate_series(1, 20) i"
)
OF_ALL_WORDS = {
    f"ROWS_{n}": f"update {{t}} set n = n + 1, f = 0.1 where id < {n}; delete from {{t}} where id = {n}; insert into {{t}} (id) values ({n} + 100)"
    for n in (5, 9)
}
OF_ALL_WORDS["WIDER"] = "alter table {t} alter n type bigint, alter id type bigint, alter f type float8"
OF_ALL_WORDS["LOGGED"] = "insert into {t} values (50) / alter table {t} set logged"
OF_ALL_TABLES = table(
    OF_ALL_MADE,
    OF_ALL_WORDS,
    {
        "followed": "ROWS_5 / WIDER / update {t} set n = 9000000000000000000 where id = 3 / ROWS_9",
        "then_full": "ROWS_5 / WIDER / vacuum full {t} / ROWS_9",
        "truncated": "ROWS_5 / truncate {t} / insert into {t} (id, f) values (1, 0.7), (2, 0.1) / WIDER / "
        "insert into {t} values (3, 1) / ROWS_9",
        "truncated_then": "ROWS_5 / WIDER / insert into {t} values (41, 1) / truncate {t} / insert into {t} values (42, 1) / ROWS_9",
        "granted": "ROWS_5 / WIDER / grant select on {t} to public / ROWS_9",
        "undone": "ROWS_5 / begin; alter table {t} set unlogged; insert into {t} values (77); rollback / WIDER / ROWS_9",
        "unlogged_before": "[copy] ROWS_5 / alter table {t} set unlogged / LOGGED / WIDER / ROWS_9",
        "unlogged_after": "[copy] ROWS_5 / WIDER / alter table {t} set unlogged / LOGGED / ROWS_9",
        "unlogged_with_it": "[copy] ROWS_5 / alter table {t} set unlogged, alter n type bigint / insert into {t} values (50) / "
        "alter table {t} set logged, alter s type int / ROWS_9",
        "unlogged_in_a_block": "[copy] ROWS_5 / do $$ begin alter table {t} set unlogged; insert into {t} values (50); "
        "alter table {t} set logged; end $$ / WIDER / ROWS_9",
        "computed": "[copy] ROWS_5 / alter table {t} alter n type bigint using n + 1 / ROWS_9",
    },
)

# Changes of columns that leave more than one reading without the event trigger at the source.

AMBIGUOUS_MADE = """
create table {t} (id int primary key, a text, b text, c text);
alter table {t} alter column b set storage external;
insert into {t} select i, 'a' || i, repeat(i::text, 3000), 'c' || i from generate_series(1, 20) i
"""
AMBIGUOUS = table(
    AMBIGUOUS_MADE,
    {},
    {
        name: re.sub(r"ROWS (\d) (.*?)(?= / |$)", edges, text)
        for name, text in {
            "again": "alter table {t} drop column c / ROWS 1 a = 'between' / alter table {t} add column c text / "
            "ROWS 2 c = 'new'",
            "within_one": "begin / ROWS 1 c = 'old' / alter table {t} drop column c / "
            "alter table {t} add column c text / ROWS 2 c = 'new' / alter table {t} drop column a / "
            "alter table {t} add column a text / ROWS 3 a = 'new', c = 'newer' / commit",
            "went": "alter table {t} add column x text / ROWS 1 x = 'x' / alter table {t} drop column x / "
            "alter table {t} add column y text default 'y' / ROWS 2 y = 'z'",
            "both_dropped": "alter table {t} drop column a / ROWS 1 c = 'one' / alter table {t} drop column c / "
            "ROWS 2 b = b || 'x' / alter table {t} add column z text / ROWS 3 z = 'z'",
            "names_passed_on": "alter table {t} drop column a / alter table {t} rename c to a / "
            "ROWS 1 a = 'was c' / alter table {t} add column c text / ROWS 2 c = 'new', a = 'still' / "
            "alter table {t} drop column a / alter table {t} add column a text / ROWS 3 a = 'newest'",
            "savepoint": "begin / alter table {t} drop column c / ROWS 1 a = 'x' / savepoint s / "
            "alter table {t} add column c int / ROWS 2 c = 1 / rollback to savepoint s / "
            "alter table {t} add column c text / ROWS 3 c = 'kept' / commit",
            "prepared": "begin / alter table {t} drop column c / ROWS 1 a = 'x' / "
            "alter table {t} add column c text / ROWS 2 c = 'prepared' / prepare transaction '{t}' / "
            "commit prepared '{t}' / ROWS 3 c = 'later'",
            "rolled_back": "begin / alter table {t} drop column c / alter table {t} add column c text / "
            "ROWS 1 c = 'never' / rollback / ROWS 2 c = 'x'",
            'hos"tile; ${env:HOME}': "alter table {t} drop column c / ROWS 1 a = 'x' / "
            'alter table {t} add column "select"" -- $report$" text / ROWS 2 "select"" -- $report$" = \'x\' / '
            'alter table {t} drop column "select"" -- $report$" / alter table {t} add column "select"" -- '
            '$report$" text / ROWS 3 "select"" -- $report$" = \'y\'',
        }.items()
    },
)
"""`ROWS 1 a = 0` are an update, a new key and an insert about the key 1."""

# Changes that only a copy of the table, or of a partition, follows: it is made by itself, and of nothing else.

COPIED_MADE = (
    "create table {t} (id int primary key, a text, n int); insert into {t} select i, 'a' || i, i from "
    "generate_series(1, 30) i"
)
COPY_WORDS = {
    "FIRST": "update {t} set n = -1 where id between 1 and 9; delete from {t} where id = 13; update {t} set id = "
    "190 where id = 19",
    "LAST": "update {t} set n = n + 7 where id between 5 and 25; insert into {t} (id, a) values (200, '200'); "
    "commit / update {t} set n = 8 where id between 7 and 13; delete from {t} where id = 25; update {t} set id = "
    "290 where id = 7",
    "OUT": "alter publication {p} drop table {t}",
    "IN": "alter publication {p} add table only {t}",
    "PARTED": "create table {t} (id int primary key, a text, n int) partition by range (id); create table {t}_1 "
    "partition of {t} for values from (0) to (100); create table {t}_2 partition of {t} for values from (100) to "
    "(300); insert into {t} select i, 'a' || i, i from generate_series(1, 199, 6) i",
    "SPOT": "create type {t}_spot as (x int, y text); create table {t} (id int primary key, a text, n int, s "
    "{t}_spot, ss {t}_spot[]); insert into {t} select i, 'a', i, row(i, 'y')::{t}_spot, array[row(i, "
    "'z')::{t}_spot] from generate_series(1, 30) i",
    "WHOLE_ROWS": COPIED_MADE + "; alter table {t} drop constraint {t}_pkey, replica identity full",
    "DATED": COPIED_MADE.replace("n int", "n int, d date default 'infinity'"),
}
COPIED = table(
    COPIED_MADE,
    COPY_WORDS,
    {
        "attribute_added": "[columns SPOT] FIRST / begin; alter type {t}_spot add attribute z int cascade; LAST",
        "attribute_dropped": "[columns SPOT] FIRST / begin; alter type {t}_spot drop attribute y cascade; LAST",
        "attribute_renamed": "[metadata SPOT] FIRST / begin; alter type {t}_spot rename attribute y to w cascade; LAST",
        "went_and_came": "[copy] FIRST / begin; OUT; update {t} set n = 5 where id = 3; IN; LAST",
        "filtered": "[copy] FIRST / begin; OUT; IN where (id < 10); update {t} set n = 5 where id = 23; OUT; IN; LAST",
        "columns": "[copy] FIRST / begin; OUT; IN (id); update {t} set n = 5 where id = 23; OUT; IN; LAST",
        "unlogged_part": "[leaves PARTED] FIRST / begin; alter table {t}_1 set unlogged; update {t} set n = 6 "
        "where id = 31; alter table {t}_1 set logged; LAST",
        "part_there_and_back": "[leaves PARTED] FIRST / begin; alter table {t} detach partition {t}_1; update "
        "{t}_1 set a = 'alone'; alter table {t} attach partition {t}_1 for values from (0) to (100); LAST",
        "parted_key": "[copy PARTED] FIRST / begin; alter table {t} drop constraint {t}_pkey, add primary key "
        "(id, a); LAST",
        "key_and_type": "[copy] FIRST / begin; alter table {t} drop constraint {t}_pkey, alter a type int using "
        "id * 3, add primary key (id, a); LAST",
        "keyless_type": "[copy WHOLE_ROWS] FIRST / begin; alter table {t} alter a type int using id * 3; LAST",
        "misfits": "[copy DATED] FIRST / begin; alter table {t} rename a to b; alter table {t} rename b to c; "
        "alter table {t} rename c to a; alter table {t} rename d to e; LAST",
        "packed": "FIRST / vacuum full {t} / update {t} set n = 8 where id between 7 and 13; delete from {t} "
        "where id = 25; update {t} set id = 290 where id = 7",
        "clustered": "FIRST / cluster {t} using {t}_pkey / update {t} set n = 8 where id between 7 and 13; delete "
        "from {t} where id = 25; update {t} set id = 290 where id = 7",
        "gone": "[copy] begin; update gone set n = 5; drop table gone; create table gone (id int primary key, b "
        "text); insert into gone values (1, 'new'); commit",
    },
)
COPIED_FOR = dict.fromkeys(COPIED, "schema-change")
COPIED_FOR |= dict.fromkeys(("went_and_came", "filtered", "columns"), "publication-changed")
COPIED_FOR |= dict.fromkeys(("attribute_renamed", "packed", "clustered", "misfits", "unlogged_part", "gone"))

# Changes that leave only some columns' values open: these are fetched under a snapshot, and the table goes on in one cut.

TYPES_OF_FETCHED = """
create type mood as enum ('sad', 'ok', 'happy');
create type shade as enum ('dark', 'light');
create domain stamped as timestamptz default clock_timestamp();
create domain word as text
"""
FETCHED_MADE = """
create table {t} (id int primary key, a text, b text, n numeric(10,2), i int, at timestamp, c char(8), m mood, ms shade[],
    g int generated always as (id * 2) stored);
alter table {t} alter column b set storage external;
insert into {t} select i, 'a' || i, repeat(i::text, 3000), i / 100.0, i, '2026-01-01'::timestamp + i * interval '1 h', 'c' || i,
    case when i % 2 = 0 then 'ok' else 'sad' end::mood, array['dark']::shade[]
from generate_series(1, 40) i
"""
FETCH_WORDS = {
    "FIRST": "update {t} set a = 'before' where id between 1 and 10; delete from {t} where id = 11; update {t} "
    "set id = 112 where id = 12; insert into {t} (id, a, i, c, at) values (101, 'new', 5, 'x', '2026-02-02') / begin",
    "LAST": "update {t} set a = 'within' where id between 13 and 16; insert into {t} (id, a) values (200, "
    "'within') / commit / update {t} set a = 'after' where id between 5 and 15; delete from {t} where id = 21; "
    "update {t} set id = 122 where id = 22; insert into {t} (id, a) values (201, 'after')",
}
FETCH_WORDS |= {
    "LAST_OF_X": FETCH_WORDS["LAST"].replace("a = ", "x = ").replace("(id, a)", "(id, x)"),
    "LAST_OF_INT": re.sub("'(within|after)'", "77", FETCH_WORDS["LAST"]),
}
FETCHED = table(
    FETCHED_MADE,
    FETCH_WORDS,
    {
        "added": "[columns] FIRST / alter table {t} add column u uuid default gen_random_uuid(), add column s "
        "bigserial, add column d stamped, add column k int generated always as identity / LAST",
        "plain_at_last": "[columns] FIRST / alter table {t} alter column g drop expression / LAST",
        "rewritten": "[columns] FIRST / alter table {t} alter column a type text using upper(a), alter column b "
        "type text using b || 'x', alter column i type bigint, alter column c type char(12) / LAST",
        "retyped": "[columns] FIRST / alter table {t} alter column i type text using 'i' || i, alter column c "
        "type text, alter column n type numeric(6,1), alter column at type timestamptz / LAST",
        "text_to_int": "[columns] FIRST / alter table {t} alter column a type int using length(a) / LAST_OF_INT",
        "not_rewritten": "[columns] FIRST / alter table {t} alter column n type numeric / LAST",
        "several": "[columns] FIRST / alter table {t} rename column a to x; alter table {t} drop column c; alter "
        "table {t} add column c uuid default gen_random_uuid(), alter column i type date using '2026-01-01'::date "
        "+ i / LAST_OF_X",
    },
)
READ = {
    "added": {"id", "u", "s", "d", "k"},
    "plain_at_last": {"id", "g"},
    "rewritten": {"id", "a", "b", "i", "c"},
    "retyped": {"id", "i", "c", "n", "at"},
    "text_to_int": {"id", "a"},
    "not_rewritten": {"id", "n"},
    "several": {"id", "x", "i", "c"},
}
FETCHED_LATER = "update {t} set i = null where id between 8 and 18; delete from {t} where id = 23; update {t} set id = 124 where id = 24"


GROUPS = {
    "what looks like lost rows": Group(SILENT),
    "a truncate beside silent changes": Group(REFILLED),
    "extension types": Group(EXTENDED_TYPES),
    "extensions that are moved or dropped": Group(EXTENSION_MOVED, triggers=(False,)),
    "types of its own": Group(TYPES, settings={"tables": {"include": ["public.*"], "exclude": ["public.*_other"]}}),
    "large values": Group(LARGE),
    "partitions and names": Group(TREES, settings={"lake": {"on_dropped_partition": "follow"}}),
    "columns": Group(COLUMNS, later=COLUMNS_LATER, triggers=(False,), quick=True),
    "keys": Group(KEYS, triggers=(False,), quick=True),
    "keys and fetches": Group(KEYS_AND_FETCHES, later=KEYS_LATER, triggers=(False,)),
    "rewrites for wider types": Group(REWRITES, later=REWRITES_LATER, triggers=(True,), keeps=True, quick=True),
    "ambiguous changes": Group(AMBIGUOUS, triggers=(True,)),
    "what only a copy follows": Group(COPIED, triggers=(False,), waits=COPIED_FOR),
    "columns that are read again": Group(
        FETCHED, first=TYPES_OF_FETCHED, later=FETCHED_LATER, triggers=(False,), reads=READ, quick=True
    ),
}


def told() -> Iterator[object]:
    """Yield each group without the event trigger, and with it."""
    for name, group in GROUPS.items():
        for trigger in group.triggers:
            marks = () if group.quick else pytest.mark.slow
            yield pytest.param(name, trigger, marks=marks, id=f"{name}, {'with' if trigger else 'without'} the trigger")


@pytest.mark.parametrize(("name", "trigger"), list(told()))
def test_the_stories_of_a_window_end_with_an_equal_lake_at_their_cost(
    env: PipelineEnv, name: str, trigger: bool
) -> None:
    if "extension" in name:
        install(env)

    assert tell(env, GROUPS[name], trigger=trigger) == []


def install(env: PipelineEnv) -> None:
    """Install what the tables need, or skip the test."""
    there = {name for (name,) in env.sql("select name from pg_available_extensions")}
    if not there.issuperset((*EXTENSIONS, "seg")):
        pytest.skip("this server has no extensions of PostgreSQL's contrib")
    env.sql("; ".join(f"create extension {name}" for name in EXTENSIONS))


FAR_AHEAD = table(
    LARGE_ROWS,
    WINDOW_WORDS,
    {
        "added_then_dropped": "alter table {t} add x text / update {t} set x = 'x' where id = 1 / | / "
        "alter table {t} drop a / update {t} set x = 'y' where id = 2 / |",
        "dropped_then_added": "alter table {t} drop a / update {t} set n = 0 where id = 1 / "
        "alter table {t} add x text / update {t} set x = 'y' where id = 2 / | / update {t} set x = 'z'",
        "in_each_window": "update {t} set n = 0 / | / alter table {t} drop a / update {t} set n = 1 / | / "
        "alter table {t} add a text / update {t} set a = 'new'",
        "names_passed_on": "alter table {t} drop a / TOUCH / | / alter table {t} rename code to a / TOUCH / "
        "alter table {t} add code int / TOUCH / | / update {t} set code = 7",
    },
)


@pytest.mark.slow
def test_windows_that_end_before_the_look_that_read_them_are_read_together(env: PipelineEnv) -> None:
    """The catalog shows each window's columns as they are after the last one."""
    begin(env, FAR_AHEAD, trigger=False)
    copied, ends = env.copies(), list[Lsn]()
    waiting = {name: list(story.steps) for name, story in FAR_AHEAD.items()}
    while any(waiting.values()):
        for name, steps in waiting.items():
            while steps and (step := steps.pop(0)) != "|":
                happen(env, name, (step,))
        ends.append(Lsn.parse(str(env.sql("select pg_current_wal_flush_lsn()::text")[0][0])))
    for end in ends:
        capture.capture_window(env.ctx, limit=end)
        env.merge()
    catch_up(env)

    assert env.wrong() == []
    assert costs(env, copied) == wanted(FAR_AHEAD, trigger=False)


@pytest.mark.slow
def test_a_partition_that_was_only_moved_to_another_file_before_the_first_capture_is_not_read_again(
    env16: PipelineEnv,
) -> None:
    env16.bootstrap(PARTS.format(t="t"))
    copied = env16.copies()
    env16.sql("vacuum full t_a")
    env16.sql("insert into t values (195, 1)")

    catch_up(env16)

    assert costs(env16, copied) == {"t": "metadata"}
    assert env16.wrong() == []


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["keep", "drop"])
def test_a_table_is_equal_after_its_last_column_was_dropped_and_when_it_has_one_again(
    env16: PipelineEnv, policy: str
) -> None:
    env16.settings["lake"] = {"on_dropped_column": policy}
    env16.bootstrap("create table t (a int); alter table t replica identity full; insert into t values (1), (1), (2)")
    env16.sql("insert into t values (3); delete from t where a = 2; alter table t drop a")
    catch_up(env16)
    assert env16.wrong() == []

    env16.sql("insert into t default values; alter table t add b text default 'b'; insert into t values ('c')")
    catch_up(env16)
    assert env16.wrong() == []


WHOLE_ROWS = table(
    KEYS_MADE,
    KEY_WORDS,
    {
        "t": "BY_ID / NO_KEY / BY_ROW / ONE_OF_EACH / update {t} set n = 5 where id = 17 / "
        "alter table {t} add primary key (id), replica identity default / RETYPED"
    },
)


@pytest.mark.slow
def test_whole_rows_that_lack_a_fetched_column_are_left_to_a_copy(env16: PipelineEnv) -> None:
    begin(env16, WHOLE_ROWS, trigger=False)

    happen(env16, "t", WHOLE_ROWS["t"].steps)
    env16.land()
    rebuild.resync(env16.ctx, None, env16.submit, woken=True)
    env16.follow()
    waiting = env16.paused()
    assert env16.wake()
    env16.merge()

    assert "came whole and without a key" in waiting["t"]
    assert env16.wrong() == []


@pytest.mark.slow
@pytest.mark.parametrize("made", ["for all tables", "for tables in schema public"])
def test_a_plain_rewrite_is_metadata_unless_the_table_was_unlogged(env16: PipelineEnv, made: str) -> None:
    adopt(env16, f"{made} with (publish_via_partition_root = true)")

    assert tell(env16, Group(OF_ALL_TABLES), trigger=True) == []


@pytest.mark.slow
def test_without_truncates_in_the_stream_a_rewrite_is_not_believed(env16: PipelineEnv) -> None:
    adopt(env16, "for all tables with (publish_via_partition_root = true, publish = 'insert, update, delete')")
    begin(env16, {"t": OF_ALL_TABLES["followed"]}, trigger=True)

    env16.sql("truncate t")
    env16.land(OF_ALL_WORDS["WIDER"].format(t="t"))

    assert set(env16.paused()) == {"t"}
