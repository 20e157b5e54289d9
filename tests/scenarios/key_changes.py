"""Changes of a table's key that the lake follows, with the rows that are written around them, on whatever server."""

from dataclasses import dataclass

from tests.pipeline_env import PipelineEnv
from tests.scenarios.column_changes import wrong

MADE = """
create table {t} (id int primary key, code varchar(40) not null, large text, n int, unique (code));
alter table {t} alter column large set storage external;
insert into {t} select i, 'c' || i, repeat(i::text, 3000), i from generate_series(1, 40) i
"""
BY_ID = (
    "update {t} set n = -1 where id between 1 and 10; delete from {t} where id = 11; update {t} set id = 112 where id = 12; "
    "update {t} set code = 'before' where id = 13; insert into {t} values (201, 'c201', 'x', 1), (202, 'c202', 'x', 1); "
    "delete from {t} where id = 202"
)
BY_CODE = (
    "update {t} set n = n + 100 where code in ('c5', 'c9', 'c12', 'before', 'c201'); delete from {t} where code = 'c6'; "
    "update {t} set code = 'moved' where code = 'c14'; update {t} set id = id + 1000 where code in ('c15', 'c201'); "
    "update {t} set code = 'other' where code = 'c30'; update {t} set code = 'c30' where code = 'c31'; "
    "update {t} set code = 'c31' where code = 'other'; insert into {t} values (6, 'c6', 'again', 6), (203, 'c203', 'y', 2)"
)
LATE = "update {t} set n = 7 where code in ('c7', 'c203'); update {t} set code = 'late' where code = 'c9'; delete from {t} where code = 'c8'"
LATE_BY_ID = (
    "update {t} set n = 7 where id in (7, 16); update {t} set id = 309 where id = 9; delete from {t} where id = 8"
)
INSERTS = "insert into {t} values (301, 'c301', 'z', 3), (302, 'c302', repeat('z', 9000), 3)"
EQUAL_ROWS = (
    "insert into {t} select 17, 'c17', 'equal', 17 from generate_series(1, 3); update {t} set n = 18 where large = 'equal'; "
    "delete from {t} where ctid in (select ctid from {t} where large = 'equal' limit 2); update {t} set n = 5 where id = 20"
)
ONE_OF_EACH = "delete from {t} where large = 'equal'"
NO_KEY = "alter table {t} drop constraint {t}_pkey, drop constraint {t}_code_key"
BY_ROW = "alter table {t} replica identity full"
TO_CODE = "alter table {t} drop constraint {t}_pkey, add primary key (code)"
TO_ID = "alter table {t} drop constraint {t}_pkey, add primary key (id)"
NEW_COLUMN = (
    "alter table {t} add column k text; update {t} set k = 'k' || id; "
    "alter table {t} drop constraint {t}_pkey, add constraint {t}_pkey primary key (k)"
)
KEYED = """
create table keyed (id int primary key, code text not null unique, n int);
insert into keyed select i, 'c' || i, 0 from generate_series(1, 500) i;
"""


@dataclass(frozen=True)
class Case:
    """A change with rows that are written within its transaction, those that come after and before it, and how the table begins."""

    change: str
    after: str = LATE
    before: str = BY_ID
    made: str = "select 1"


CASES = {
    "code": Case(f"{TO_CODE}; {BY_CODE}"),
    "code_at_the_end": Case(BY_CODE, f"{TO_CODE}"),
    "index": Case(f"alter table {{t}} replica identity using index {{t}}_code_key; {BY_CODE}"),
    "pair": Case(
        f"alter table {{t}} drop constraint {{t}}_pkey, add primary key (id, code); {BY_CODE}", f"{LATE}; {LATE_BY_ID}"
    ),
    "there_and_back": Case(
        f"{TO_CODE}; {BY_CODE}; {TO_ID}; {BY_ID.replace('201', '401').replace('202', '402')}", LATE_BY_ID
    ),
    "rows": Case(f"{NO_KEY}; {BY_ROW}; {EQUAL_ROWS}; {BY_CODE}"),
    "rows_and_back": Case(
        f"{NO_KEY}; {BY_ROW}; {EQUAL_ROWS}; {BY_CODE}",
        f"{ONE_OF_EACH}; alter table {{t}} add primary key (code), replica identity default; {LATE}",
    ),
    "from_rows": Case(
        f"{ONE_OF_EACH}; alter table {{t}} add primary key (code); alter table {{t}} replica identity default; {BY_CODE}",
        before=EQUAL_ROWS,
        made=f"{NO_KEY}; {BY_ROW}",
    ),
    "whole": Case(f"{TO_CODE}; {BY_CODE}", made=BY_ROW),
    "made_again": Case(
        f"{NO_KEY}; {EQUAL_ROWS}; {ONE_OF_EACH}; alter table {{t}} add constraint {{t}}_pkey primary key (id)",
        LATE_BY_ID,
        made=BY_ROW,
    ),
    "nothing": Case(f"alter table {{t}} drop constraint {{t}}_pkey; {INSERTS}", INSERTS.replace("30", "40")),
    "nothing_and_back": Case(
        f"alter table {{t}} drop constraint {{t}}_pkey; {INSERTS}",
        f"alter table {{t}} add primary key (code); {BY_CODE}",
    ),
    "dropped": Case(
        "alter table {t} drop column id, add primary key (code); update {t} set n = 4 where code in ('c5', 'c12'); "
        "delete from {t} where code = 'c6'; insert into {t} values ('c203', 'y', 2)"
    ),
    "renamed": Case(
        f"{TO_CODE}; alter table {{t}} alter code type varchar(80), alter code set default 'x'; {BY_CODE}; "
        "alter table {t} rename code to id_; alter table {t} rename id to code; alter table {t} rename id_ to id",
        "update {t} set n = 7 where id in ('c7', 'c203'); update {t} set id = 'late' where id = 'c9'",
    ),
    "new_column": Case(NEW_COLUMN, "update {t} set n = 8 where k = 'k7'; delete from {t} where k = 'k8'"),
    "truncated": Case(INSERTS, f"truncate {{t}}; {TO_CODE}; {INSERTS}; update {{t}} set n = 9 where code = 'c301'"),
}


def run(env: PipelineEnv, statements: str, name: str) -> None:
    env.sql(statements.format(t=name))


def change_keys(env: PipelineEnv) -> list[str]:
    """Change the key of a table per case before, within and after transactions with rows; return what is wrong afterwards."""
    for name, case in CASES.items():
        run(env, f"{MADE}; {case.made}", name)
    env.bootstrap()
    copied = env.copies()

    for name, case in CASES.items():
        run(env, case.before, name)
        run(env, f"begin; update {{t}} set n = 1 where id = 16; {case.change}; commit", name)
        for statement in case.after.split("; "):
            run(env, statement, name)
    env.follow()

    missing = [
        f"{name}: {count} changes did not meet the row that they speak of" for name, count in missed(env).items()
    ]
    left = [] if env.merge() is None else ["a merge was left to do"]
    return [*wrong(env, copied), *missing, *left]


def change_of_key(env: PipelineEnv, n: int) -> str:
    """Return rows of `keyed` by its key, a change to the other one, and rows by that, partly in one transaction."""
    ((old,),) = env.sql(
        "select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = indkey[0] "
        "where indrelid = 'keyed'::regclass and indisprimary"
    )
    new = "code" if old == "id" else "id"
    first = 10 * (n % 50) + 1  # of 500 rows, whatever the number
    second = first + 4
    return (
        f"begin; update keyed set n = {n} where id = {first}; delete from keyed where id = {first + 1}; "
        f"update keyed set {old} = {'-id' if old == 'id' else 'code || chr(43)'} where id = {first + 2}; "
        f"alter table keyed drop constraint keyed_pkey, add constraint keyed_pkey primary key ({new}); "
        f"update keyed set n = {n} where id = {second}; delete from keyed where id = {second + 1}; commit; "
        f"update keyed set {new} = {'-id' if new == 'id' else 'code || chr(43)'} where id = {second + 2}; "
        f"update keyed set n = n + 1 where id % 9 = {n} % 9"
    )


def missed(env: PipelineEnv) -> dict[str, int]:
    """Return the rows that changes missed, or met where there should be none, by table."""
    found = env.ledger.execute(
        "select name, update_missing + delete_missing + insert_existing from penstock.table where pipeline = %s",
        env.name,
    )
    return {name: count for name, count in found if count}
