"""Changes of columns that leave more than one reading without the event trigger at the source, on whatever server."""

from collections.abc import Iterator

from tests.pipeline_env import PipelineEnv
from tests.scenarios.column_changes import wrong

MADE = """
create table {t} (id int primary key, a text, b text, c text);
alter table {t} alter column b set storage external;
insert into {t} select i, 'a' || i, repeat(i::text, 3000), 'c' || i from generate_series(1, 20) i
"""
EDGES = "update {t} set {set} where id = {n}; update {t} set id = id + 100 where id = {n}; insert into {t} (id) values ({n} + 200)"

AMBIGUOUS = {
    "again": "alter table {t} drop column c / ROWS 1 a = 'between' / alter table {t} add column c text / "
    "ROWS 2 c = 'new'",
    "within_one": "begin / ROWS 1 c = 'old' / alter table {t} drop column c / alter table {t} add column c text / "
    "ROWS 2 c = 'new' / alter table {t} drop column a / alter table {t} add column a text / "
    "ROWS 3 a = 'new', c = 'newer' / commit",
    "went": "alter table {t} add column x text / ROWS 1 x = 'x' / alter table {t} drop column x / "
    "alter table {t} add column y text default 'y' / ROWS 2 y = 'z'",
    "both_dropped": "alter table {t} drop column a / ROWS 1 c = 'one' / alter table {t} drop column c / "
    "ROWS 2 b = b || 'x' / alter table {t} add column z text / ROWS 3 z = 'z'",
    "names_passed_on": "alter table {t} drop column a / alter table {t} rename c to a / ROWS 1 a = 'was c' / "
    "alter table {t} add column c text / ROWS 2 c = 'new', a = 'still' / alter table {t} drop column a / "
    "alter table {t} add column a text / ROWS 3 a = 'newest'",
    "savepoint": "begin / alter table {t} drop column c / ROWS 1 a = 'x' / savepoint s / "
    "alter table {t} add column c int / ROWS 2 c = 1 / rollback to savepoint s / "
    "alter table {t} add column c text / ROWS 3 c = 'kept' / commit",
    "prepared": "begin / alter table {t} drop column c / ROWS 1 a = 'x' / alter table {t} add column c text / "
    "ROWS 2 c = 'prepared' / prepare transaction '{t}' / commit prepared '{t}' / ROWS 3 c = 'later'",
    "rolled_back": "begin / alter table {t} drop column c / alter table {t} add column c text / "
    "ROWS 1 c = 'never' / rollback / ROWS 2 c = 'x'",
    'hos"tile; ${env:HOME}': "alter table {t} drop column c / ROWS 1 a = 'x' / "
    'alter table {t} add column "select"" -- $report$" text / ROWS 2 "select"" -- $report$" = \'x\' / '
    'alter table {t} drop column "select"" -- $report$" / alter table {t} add column "select"" -- $report$" text / '
    'ROWS 3 "select"" -- $report$" = \'y\'',
}
"""` / ` ends each statement; `ROWS 1 a = 0` are the changes of `EDGES` to rows about the key 1."""


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a case, those about rows written out."""
    for step in text.split(" / "):
        _, number, set_ = step.split(" ", 2) if step.startswith("ROWS ") else ("", "", "")
        yield EDGES.replace("{set}", set_).replace("{n}", number) if number else step


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def migrate(env: PipelineEnv, name: str) -> None:
    with env.source.connect() as conn:
        for statement in statements(AMBIGUOUS[name]):
            text = statement.replace("{t}", quoted(name) if "prepare" not in statement else "prepared")
            conn.execute(text.encode())


def bootstrapped(env: PipelineEnv, *, trigger: bool) -> None:
    for name in AMBIGUOUS:
        env.sql(MADE.format(t=quoted(name)))
    env.bootstrap(trigger=trigger)
    env.capture()


def follow_ambiguous_changes(env: PipelineEnv) -> list[str]:
    """Migrate a table per case with the trigger, as one window; return what is wrong afterwards."""
    bootstrapped(env, trigger=True)
    copied = env.copies()

    for name in AMBIGUOUS:
        migrate(env, name)
    env.follow()

    return wrong(env, copied)
