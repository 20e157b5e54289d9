"""Tables that are rewritten for wider types, with rows around it, on whatever server; the event trigger tells that no value changed."""

from tests.pipeline_env import PipelineEnv
from tests.scenarios.column_changes import data_files, wrong

MADE = """
create table {t} (id int primary key, s smallint, n int default 3, b text, l int[], a varchar(9), f real default 0.1);
alter table {t} alter column b set storage external;
insert into {t} select i, -i, i * 1000000, repeat(i::text, 3000), array[i, null, -i], 'a' || i, i / 7.0 from generate_series(1, 40) i;
alter table {t} add column d int default 5, add column r real default 0.7
"""
BEFORE = (
    "update {t} set n = n + 1 where id between 1 and 10; delete from {t} where id = 11; "
    "update {t} set id = 112 where id = 12; insert into {t} (id) values (2147483647)"
)
ROWS = "update {t} set n = n - 1, d = 6 where id between 8 and 16; insert into {t} (id) values (200); delete from {t} where id = 30"
AFTER = (
    "update {t} set n = n + 2 where id between 5 and 15; delete from {t} where id = 21; update {t} set id = 122 where id = 22; "
    "delete from {t} where id = 2147483647; update {t} set id = 300 where id = 200"
)
CHANGES = {
    "the_key": ["alter table {t} alter column id type bigint", "update {t} set id = 9223372036854775807 where id = 31"],
    "others": [
        "-- in one statement\nALTER TABLE {t} ALTER n TYPE int8, ALTER s TYPE int; ",
        "update {t} set n = 9223372036854775807, s = 100000 where id = 31",
    ],
    "reals": [
        "alter table {t} alter f type float8, alter column r type double precision",
        "update {t} set f = case id when 31 then 0.1 when 32 then 'NaN' when 33 then '-Infinity' else 1e300 end where id in (31, 32, 33, 34)",
    ],
    "arrays": [
        "/* of them */ alter table {t} alter l type int8[]",
        "update {t} set l = '{{9223372036854775807,NULL}}' where id = 31",
    ],
    "all_at_once": [
        "alter table {t} alter id type bigint, alter n type bigint, alter s type bigint, alter d type bigint, alter a type text",
        "update {t} set d = 9223372036854775807, s = d where id = 31",
    ],
    "one_by_one": [
        "alter table {t} alter s type int",
        ROWS.replace("200", "201").replace("30", "29"),
        "alter table {t} rename column s to t",
        "alter table {t} alter t type bigint",
    ],
    "with_a_constraint": ["alter table {t} alter id type bigint, add check (n > 0), alter n set not null"],
    "whole_rows": ["alter table {t} alter n type bigint, alter id type bigint, alter f type float8"],
    "then_full": ["alter table {t} alter n type bigint", "vacuum full {t}"],
}


UNPROVEN = {
    "computed": "alter table {t} alter n type bigint using n + 1",
    "in_a_block": "do $$ begin alter table {t} alter n type bigint using n + 1; end $$",
    "two_commands": "alter table {t} alter n type bigint; alter table {t} rename n to m",
    "other_computed": "alter table {t} alter n type bigint, alter s type int using -s",
    "with_uuids": "alter table {t} alter id type bigint, add u uuid default gen_random_uuid()",
    "to_text": "alter table {t} alter n type text",
    "reals_computed": "alter table {t} alter f type float8 using f::text::float8",
    "there_and_back": "alter table {t} alter n type bigint using n + 1; alter table {t} alter n type int",
}
"""Changes of which it is not told that all values were kept; {t} is the table."""


def change(env: PipelineEnv, name: str) -> None:
    env.sql(BEFORE.format(t=name))
    first, *others = (text.format(t=name) for text in CHANGES[name])
    with env.source.connect() as conn:
        for text in ["begin", f"update {name} set s = 1 where id = 14", first, ROWS.format(t=name), "commit", *others]:
            conn.execute(text.encode())
    env.sql(AFTER.format(t=name))


def bootstrapped(env: PipelineEnv, *, trigger: bool) -> None:
    for name in CHANGES:
        env.sql(MADE.format(t=name))
    env.sql("alter table whole_rows drop constraint whole_rows_pkey; alter table whole_rows replica identity full")
    env.bootstrap(trigger=trigger)
    env.capture()


def follow_told_rewrites(env: PipelineEnv) -> list[str]:
    """Rewrite a table per case with the trigger, as one window, then a second one; return what is wrong afterwards."""
    bootstrapped(env, trigger=True)
    copied = env.copies()
    files = {name: data_files(env, name) for name in CHANGES}

    for name in CHANGES:
        change(env, name)
    env.follow()
    found = wrong(env, copied)
    found += [f"{name} has lost files" for name in CHANGES if not files[name] <= data_files(env, name)]

    for name in CHANGES:
        env.sql(f"update {name} set b = 'later' where id % 3 = 0; delete from {name} where id = 9223372036854775807")
    env.follow()
    return [*found, *wrong(env, copied)]
