"""With the event trigger at the source every version of a table is known: what is ambiguous without it costs no copy."""

import pytest

from penstock.flow.capture import run as capture
from penstock.flow.context import Context
from penstock.flow.verify.compare import compare
from penstock.ledger.windows import Windows
from penstock.lsn import Lsn
from penstock.shapes.ddl_message import VERSION
from penstock.source import ddl_trigger, session
from tests.dying import dying
from tests.pipeline_env import PipelineEnv
from tests.scenarios.stories import begin, happen
from tests.scenarios.test_stories import AMBIGUOUS
from tests.scenarios.test_stories import REWRITTEN_MADE as MADE

DROPPED = "update {t} set n = 1 where id = 1; alter table {t} drop column a"
AGAIN = "alter table {t} add column a text; update {t} set a = 'new', n = 2 where id = 2"
OFF = "alter event trigger penstock_ddl_end disable; alter event trigger penstock_ddl_drop disable; alter event trigger penstock_ddl_rewrite disable"
ON = "alter event trigger penstock_ddl_end enable always; alter event trigger penstock_ddl_drop enable always; alter event trigger penstock_ddl_rewrite enable always"


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


@pytest.mark.slow
def test_rewrites_that_may_have_changed_a_value_cost_what_they_did(env16: PipelineEnv) -> None:
    unheard = {"unheard": "alter table {t} alter n type bigint"}
    env16.each(UNPROVEN | unheard, MADE)
    env16.bootstrap(trigger=True)
    env16.capture()

    for name, text in UNPROVEN.items():
        env16.sql(text.format(t=name))
    env16.sql(OFF)
    env16.sql(unheard["unheard"].format(t="unheard"))
    env16.land(ON)

    reasons = env16.paused()
    assert set(reasons) == UNPROVEN.keys() | unheard
    assert "column u was added" in reasons["with_uuids"]
    fetched = {each.name for each in env16.tables if each.remedy == "read"}
    assert fetched == reasons.keys() - {"with_uuids"}, "its key is in doubt"
    reported = env16.ctx.ledger.events.unannounced(env16.name, "schema-followed")
    assert not [each.message for each in reported if "type" in each.message]


@pytest.mark.slow
def test_a_rewrite_is_followed_over_several_windows_that_are_killed_before_they_are_staged(env16: PipelineEnv) -> None:
    """The look is far ahead of the first of them."""
    tables = ("followed", "computed_later")
    env16.each(tables, MADE)
    env16.bootstrap(trigger=True)
    env16.capture()
    copied, ends = env16.copies(), list[Lsn]()

    def end() -> None:
        ends.append(Lsn.parse(str(env16.sql("select pg_current_wal_flush_lsn()::text")[0][0])))

    for name in tables:
        env16.sql(f"update {name} set n = n + 1")
        env16.sql(f"alter table {name} alter s type int")
        env16.sql(f"update {name} set s = 70000 where id = 2")
    end()
    env16.sql("alter table followed alter id type bigint")
    env16.sql("update followed set id = 3000000000 where id = 1")
    end()
    env16.sql("alter table computed_later alter n type bigint using n + 1")
    env16.sql("alter table followed alter n type bigint")
    env16.sql("update followed set n = 3000000000 where id = 5")
    for stop in ends:
        with dying(Windows, "stage"):
            capture.capture_window(env16.ctx, limit=stop)
        capture.capture_window(env16.ctx, limit=stop)
        assert env16.paused() == {}, "what was told so far has kept all values"
        env16.merge()
    env16.follow()

    assert set(env16.paused()) == {"computed_later"}
    assert [each.name.rpartition(".")[2] for each in compare(env16.ctx).tables if each.equal] == ["followed"]
    assert env16.copies() == copied
    reported = env16.ctx.ledger.events.unannounced(env16.name, "schema-followed")
    assert [each.table_name for each in reported if "changed its type" in each.message] == ["public.followed"] * 3


@pytest.mark.slow
def test_without_the_trigger_the_same_changes_are_not_guessed(env16: PipelineEnv) -> None:
    begin(env16, AMBIGUOUS, trigger=False)

    for name, story in AMBIGUOUS.items():
        happen(env16, name, story.steps)
    env16.follow()

    assert set(env16.paused()) == AMBIGUOUS.keys() - {"rolled_back"}
    assert "in more than one way" in env16.paused()["again"], "it is asked for a copy"
    equal = {each.name.rpartition(".")[2] for each in compare(env16.ctx).tables if each.equal}
    assert "rolled_back" in equal


STORIES = {
    "present": [DROPPED, AGAIN],
    "disabled": [OFF, DROPPED, AGAIN, ON],
    "disabled_after": [DROPPED, OFF, AGAIN, ON],
    "half_disabled": ["alter event trigger penstock_ddl_end disable", DROPPED, AGAIN, ON],
    "disabled_within": ["begin;" + OFF, DROPPED, AGAIN, ON, "commit"],
    "removed": [ddl_trigger.remove_statement(), DROPPED, AGAIN, ddl_trigger.install_statement()],
    "replica": ["set session_replication_role = replica", DROPPED, AGAIN, "reset session_replication_role"],
    "only_origin": ["alter event trigger penstock_ddl_end enable", DROPPED, AGAIN, ON],
    "failing": ["{broken}", DROPPED, AGAIN, "{mended}"],
    "forged": ["{forged}", DROPPED, AGAIN],
    "present_again": [DROPPED, AGAIN],
}
BROKEN = ddl_trigger.install_statement().replace("'count', c.relnatts", "'count', 1 / (c.relnatts - c.relnatts)")


def forged(env: PipelineEnv, name: str) -> str:
    """Return what a user sends who would have the new column be taken for the old one."""
    ((oid,),) = env.sql(f"select '{name}'::regclass::oid::bigint")
    with session.connect(env.ctx.source, what="test") as conn:
        trigger = ddl_trigger.read_trigger(conn).token
    state = (
        f'{{"version": {VERSION}, "oid": {oid}, "trigger": "{trigger}", "xid": "3", "count": 3, '
        '"columns": [[1, "id", 23, -1, 3], [3, "a", 25, -1, 3]], "dropped": [[2, 3]], "file": 3, "plain": true, "unlogged": false}'
    )
    return f"select pg_logical_emit_message(true, 'penstock.ddl', '{state}')"


@pytest.mark.slow
def test_where_the_trigger_was_away_nothing_is_guessed_and_who_lies_is_not_heard(env16: PipelineEnv) -> None:
    env16.each(
        STORIES, "create table {t} (id int primary key, n int, a text); insert into {t} values (1, 0, 'x'), (2, 0, 'y')"
    )
    env16.bootstrap(trigger=True)
    env16.capture()

    for name, story in STORIES.items():
        texts = {
            "{t}": name,
            "{broken}": BROKEN,
            "{mended}": ddl_trigger.install_statement(),
            "{forged}": forged(env16, name),
        }
        with env16.source.connect() as conn:
            for text in story:
                for placeholder, value in texts.items():
                    text = value if text == placeholder else text.replace(placeholder, value)  # noqa: PLW2901
                conn.execute(text.encode())
        env16.capture()
    env16.merge()

    assert set(env16.paused()) == STORIES.keys() - {"present", "replica", "only_origin", "forged", "present_again"}
    assert all("in more than one way" in reason for reason in env16.paused().values())
    equal = {each.name.rpartition(".")[2] for each in compare(env16.ctx).tables if each.equal}
    assert STORIES.keys() - env16.paused().keys() <= equal


def as_reader(env: PipelineEnv) -> Context:
    """Return the pipeline's context with a login that owns nothing."""
    role, password = f"reader_{env.name}", env.source.server.password
    env.sql(
        f"create role {role} login replication password '{password}'; grant select on all tables in schema public to {role}"
    )
    return env.logged_in(user=role)


@pytest.mark.slow
def test_two_hundred_changes_of_a_table_and_a_look_far_ahead_are_read_by_a_role_without_rights(
    env16: PipelineEnv,
) -> None:
    env16.bootstrap(
        "create table t (id int primary key, n int, a text); insert into t select i, 0, 'a' from generate_series(1, 300) i",
        trigger=True,
    )
    env16.capture()
    copied, reader = env16.copies(), as_reader(env16)

    ends = []
    with env16.source.connect() as conn:
        for n in range(1, 101):
            conn.execute(f"alter table t drop column a; update t set n = {n} where id = {n}".encode())
            conn.execute(
                f"alter table t add column a text; update t set a = 'a{n}' where id between {n} and {n + 9}".encode()
            )
            if n % 30 == 0:
                ends.append(Lsn.parse(str(conn.execute("select pg_current_wal_flush_lsn()::text").fetchone()[0])))
    for end in ends:
        capture.capture_window(reader, limit=end)  # each with a look at what the table has become at last
    capture.capture(reader)
    env16.merge()

    assert env16.wrong() == []
    assert env16.copies() == copied
