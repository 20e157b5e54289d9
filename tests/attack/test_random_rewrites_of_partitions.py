"""Random histories of partitioned tables: none that is followed by what the event trigger told has lost a row that no message takes."""

from random import Random

import psycopg
import pytest

from penstock.source import ddl_trigger
from tests.pipeline_env import PipelineEnv

TABLES = 80
SENT = """
create schema apart;
create table apart.sent (name text, sum bigint);
create table ticks (n int primary key);
create function note() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then insert into apart.sent values (tg_argv[0], -hashtext(old.id || ' ' || old.k)); end if;
  if tg_op <> 'DELETE' then insert into apart.sent values (tg_argv[0], hashtext(new.id || ' ' || new.k)); end if;
  return null;
end $$
"""
"""What row triggers saw stands for the stream, which has no TRUNCATE of one partition either."""
MADE = """
create table {t} (id int, k int, n int default 3, b text, s smallint, primary key (id, k)) partition by range (k);
create trigger note after insert or update or delete on {t} for each row execute function note('{t}');
create table {t}_1 partition of {t} for values from (0) to (10);
create table {t}_2 partition of {t} for values from (10) to (20) partition by list (k);
create table {t}_2a partition of {t}_2 for values in (10, 11, 12, 13, 14);
create table {t}_2b partition of {t}_2 default;
create table {t}_0 partition of {t} default;
insert into {t} select i, i % 30, i, 'b' || i, i from generate_series(1, 90) i
"""
WIDER = [
    "alter table {t} alter n type bigint",
    "alter table {t} alter s type int",
    "alter table {t} alter id type bigint, alter s type int, alter n type bigint",
]
TRUNCATE = "truncate {t}_{leaf}"
FILL = "insert into {t} (id, k) values ({n} + 1000, 1), ({n} + 1000, 12), ({n} + 1000, 17), ({n} + 1000, 25)"
AFTER = [
    "cluster {t}_{leaf} using {t}_{leaf}_pkey",
    "alter table {t} alter n set default 8",
    "alter table {t}_{leaf} set (fillfactor = 90)",
    *WIDER,
]
"""What comes after a TRUNCATE in these, to look like what a rewrite leaves."""
OTHERS = [
    *AFTER[:3],
    "vacuum full {t}_{leaf}",
    "vacuum freeze {t}",
    "alter table {t} rename b to b{n}",
    "alter table {t}_{leaf} set unlogged",
    "alter table {t}_{leaf} set logged",
    "alter table {t} detach partition {t}_1",
    "delete from {t}_1 where id = {n}",
    "alter table {t} attach partition {t}_1 for values from (0) to (10)",
]
ROWS = [
    FILL,
    "update {t} set k = 19 where id = {n}",
    "delete from {t} where id = {n} + 1",
]


def history(rng: Random) -> list[str]:
    """Return statements of which some fail: at least one that rewrites, others beside it, in transactions and parts of one or not."""
    texts = [rng.choice(WIDER)]
    if rng.random() < 0.5:
        part = rng.random() < 0.5
        texts += ["savepoint b", TRUNCATE, "release b", FILL] if part else [TRUNCATE, FILL]
        texts += rng.choices(AFTER, k=rng.randint(0, 2))
    for kind in rng.choices([OTHERS, ROWS, WIDER, [TRUNCATE]], [2, 4, 1, 2], k=rng.randint(0, 2)):
        texts.insert(rng.randint(0, len(texts)), rng.choice(kind))
    if rng.random() < 0.3:
        start = rng.randint(0, len(texts) - 1)
        texts.insert(start, "savepoint a")
        texts.insert(rng.randint(start + 1, len(texts)), rng.choice(("release a", "release a", "rollback to a")))
    start = rng.choice((0, 0, rng.randint(0, len(texts)), len(texts)))
    return [*texts[:start], "begin", *texts[start:], "commit"]


@pytest.mark.slow
def test_no_table_that_is_followed_has_lost_a_row_in_silence(env: PipelineEnv) -> None:
    rng = Random(env.source.server.major)
    names = [f"r{n}" for n in range(TABLES)]
    env.settings["source"] = {**env.settings["source"], "ddl_trigger": True}
    env.sql(SENT)
    env.each(names, MADE)
    env.begin(ddl_trigger.install_statement())
    env.ledger.execute("update penstock.table set state = 'ready', complete_through = '0/1'")  # as if readers saw them
    env.capture()

    done = {name: history(rng) for name in names}
    with env.source.connect() as conn:
        for name, texts in done.items():
            leaf = rng.choice(("1", "2a", "2b", "0"))
            for n, text in enumerate(texts):
                try:
                    conn.execute(text.format(t=name, n=n, leaf=leaf).encode())
                except psycopg.Error:
                    continue
    for n in range(2):  # what one window left open the next one decides
        env.land(f"insert into ticks values ({n})")

    reasons = env.paused()
    followed = [name for name in names if name not in reasons]
    lost = [name for name in names if difference(env, name)]
    assert [(name, done[name]) for name in followed if name in lost] == []
    assert len(followed) > TABLES // 8, "most cost a copy"
    assert len(lost) > TABLES // 8, "hardly any has lost a row"


def difference(env: PipelineEnv, name: str) -> bool:
    """Return whether a table has other rows than were sent."""
    query = f"""select (select coalesce(sum(sum), 0) from apart.sent where name = '{name}')
        <> (select coalesce(sum(hashtext(id || ' ' || k)), 0) from {name})"""
    ((found,),) = env.sql(query)
    return bool(found)
