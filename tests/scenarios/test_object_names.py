"""Columns whose text is the name of another object: told of, refused as a key, and no difference once the object is renamed."""

import pytest

from penstock.errors import SourceError
from penstock.flow.load import bootstrap
from penstock.flow.verify.compare import compare
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin, members, messages, states


def test_a_table_that_is_known_by_names_of_other_objects_does_not_join_and_one_that_shows_some_is_told_of(
    env: PipelineEnv,
) -> None:
    begin(env)
    env.sql("create table rules (role regrole primary key); create table log (id int primary key, relation regclass)")
    for _ in range(2):
        env.capture()

    assert members(env) == {"t", "log"}
    (message,) = messages(env, "no-usable-identity")
    assert message.startswith(
        "public.rules matches tables.include and is not published, because its key has column role"
    )
    (message,) = messages(env, "text-not-stored")
    assert message.startswith("public.log has column relation (regclass), whose text is the name of another object")

    env.land("alter table log add by regrole; alter table rules alter role type oid")
    assert states(env) == {"t": "copied", "log": "waiting", "rules": "waiting"}
    assert "columns relation (regclass), by (regrole)" in messages(env, "text-not-stored")[-1]


def test_a_key_that_becomes_one_of_names_pauses_its_table_and_no_copy_is_made_until_it_is_another(
    env: PipelineEnv,
) -> None:
    begin(env, "create table t (id int primary key, relation regclass not null unique)")
    env.land()

    env.land("alter table t drop constraint t_pkey, add primary key (relation)")

    why = env.table("t")
    assert (why.state, why.paused_slug) == ("paused", "no-usable-identity")
    assert "its key has column relation (regclass)" in (why.paused_reason or "")
    assert 'alter table "public"."t" alter "relation" type oid, then resync it' in (why.paused_reason or "")


def test_a_publication_is_not_made_for_a_table_that_is_known_by_names_of_other_objects(env: PipelineEnv) -> None:
    env.sql("create table t (relation regclass primary key)")

    with pytest.raises(SourceError, match=r"no-usable-identity.*its key has column relation"):
        bootstrap.prepare(env.ctx)

    assert env.sql("select from pg_publication") == []
    env.settings["source"] = {"publish": ["insert", "truncate"]}
    bootstrap.prepare(env.ctx)


@pytest.mark.spark
def test_a_name_that_changed_since_is_no_difference_and_whatever_else_differs_is_one(env16: PipelineEnv) -> None:
    env16.bootstrap(
        "create schema s; create table s.a (); create table s.b (); create table t (id int primary key, n int, x regclass);"
        "insert into t values (1, 1, 's.a'), (2, 2, 's.b'), (3, 3, null)"
    )
    assert [each.renamed for each in compare(env16.ctx).tables] == [()]

    env16.follow("alter table s.a rename to c; drop table s.b; update t set n = 30 where id = 3")

    (found,) = compare(env16.ctx).tables
    assert (found.equal, found.renamed, found.different) == (True, ("x",), 0)
    assert "another text in x, the name of an object that was renamed or dropped since" in "\n".join(found.lines())
    assert env16.paused() == {}

    env16.sql("update t set n = 31 where id = 3")
    (found,) = compare(env16.ctx).tables
    assert (found.equal, found.renamed, found.different) == (False, (), 3)
