"""A table whose key changes again and again, with rows of both keys around it."""

from tests.pipeline_env import PipelineEnv

KEYED = """
create table keyed (id int primary key, code text not null unique, n int);
insert into keyed select i, 'c' || i, 0 from generate_series(1, 500) i;
"""


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
