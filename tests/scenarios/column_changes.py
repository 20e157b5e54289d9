"""Changes of columns that the lake follows, with the rows that are written around them, on whatever server."""

from dataclasses import dataclass

from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv

MADE = """
create table {t} (id int primary key, a text, b text, n numeric(10,2), v varchar(20), at timestamp(0));
alter table {t} alter column b set storage external;
insert into {t} select i, 'a' || i, repeat(i::text, 3000), i / 100.0, 'v' || i, '2026-01-01'::timestamp + i * interval '1 h'
from generate_series(1, 40) i
"""
BEFORE = (
    "update {t} set a = 'before' where id between 1 and 10; delete from {t} where id = 11; "
    "update {t} set id = 112 where id = 12"
)
WITHIN = "update {t} set n = 0 where {id} between 13 and 16; insert into {t} ({id}) values (200)"
AFTER = (
    "update {t} set n = n + 1 where {id} between 5 and 15; delete from {t} where {id} = 21; "
    "update {t} set {id} = 122 where {id} = 22"
)
LATER = "update {t} set v = 'later' where n > 0"


@dataclass(frozen=True)
class Case:
    """A change, rows that are written within its transaction after it, what the key is called then, and whether it writes rows."""

    change: str
    within: str = WITHIN
    id: str = "id"
    writes: bool = False


CASES = {
    "renamed": Case("alter table {t} rename column a to c"),
    "swapped": Case(
        "alter table {t} rename column a to x; alter table {t} rename column b to a; alter table {t} rename column x to b"
    ),
    "key_renamed": Case("alter table {t} rename column id to key", id="key"),
    "dropped": Case("alter table {t} drop column a"),
    "large_dropped": Case("alter table {t} drop column b"),
    "added_again": Case("alter table {t} drop column a; alter table {t} add column a int default 7"),
    "chained": Case("alter table {t} drop column a; alter table {t} rename b to a; alter table {t} add b date"),
    "varchar_50": Case("alter table {t} alter column v type varchar(50)"),
    "text": Case("alter table {t} alter column v type text"),
    "varchar": Case("alter table {t} alter column a type varchar"),
    "numeric_14": Case(
        "alter table {t} alter column n type numeric(14,2)", "update {t} set n = 99999999999.99 where id = 13"
    ),
    "finer": Case(
        "alter table {t} alter column at type timestamp(3)",
        "update {t} set at = '2026-05-05 01:02:03.456' where id = 13",
    ),
    "now_full": Case("alter table {t} replica identity full"),
    "not_full": Case("alter table {t} replica identity default"),
    "rest": Case(
        "alter table {t} alter column a set default 'x', alter v set statistics 7, add check (n > -1)",
        "update {t} set n = 0 where id = 13",
        writes=True,
    ),
}


FULL_BEFORE = "alter table not_full replica identity full"


def run(env: PipelineEnv, statements: str, name: str) -> None:
    env.sql(statements.format(t=name, id=CASES[name].id))


def change_columns(env: PipelineEnv) -> None:
    """Change the columns of a table per case before, within and after transactions with rows, and compare."""
    for name in CASES:
        run(env, MADE, name)
    env.bootstrap(FULL_BEFORE)
    copied = env.copies()

    for name, case in CASES.items():
        env.sql(BEFORE.format(t=name))
        run(env, "begin; update {t} set n = 1 where id = 14; " + f"{case.change}; {case.within}; commit", name)
        run(env, AFTER, name)
    env.follow()

    assert env.paused() == {}
    assert env.unlike() == []
    assert env.copies() == copied, "nothing was copied"

    for name in CASES:
        run(env, LATER, name)
    env.follow()
    assert compare(env.ctx).equal


def wrong(env: PipelineEnv, copied: set[tuple[str, int]]) -> list[str]:
    """Return what is not as it should be: tables that are paused, differ from the source, or were copied beyond `copied`."""
    waiting = [f"{name} is paused: {reason}" for name, reason in env.paused().items()]
    differing = env.unlike()
    return [*waiting, *differing, *(f"table {oid} was copied" for _, oid in env.copies() - copied)]


def data_files(env: PipelineEnv, name: str) -> set[str]:
    assert env.spark is not None
    env.spark.sql(f"refresh table lake.{env.name}.public.{name}")
    return {row[0] for row in env.spark.sql(f"select file_path from lake.{env.name}.public.{name}.files").collect()}
