"""Another session takes changes from the slot, or the slot itself, at every statement of a capture: no row is missed unsaid.

The capture is stopped before each statement that it sends to the source, whatever that is today: one that is added later
is covered by itself. What happens between two of them is for the capture as if it happened just before the second.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import psycopg
import pytest

from penstock.errors import PenstockError
from penstock.flow.capture import run as capture
from penstock.source.arrow import ArrowSession
from penstock.source.session import SourceSession
from tests.pipeline_env import PipelineEnv
from tests.scenarios.members import begin
from tests.scenarios.recovery import consume

Attack = Callable[[PipelineEnv], None]


def advance(env: PipelineEnv) -> None:
    env.sql(f"select pg_replication_slot_advance('{env.ctx.pipeline.slot}', pg_current_wal_flush_lsn())")


def drop(env: PipelineEnv) -> None:
    env.sql(f"select pg_drop_replication_slot('{env.ctx.pipeline.slot}')")


def make(env: PipelineEnv) -> None:
    env.sql(f"select pg_create_logical_replication_slot('{env.ctx.pipeline.slot}', 'pgoutput')")


def drop_and_make(env: PipelineEnv) -> None:
    drop(env)
    make(env)


def publish_again(env: PipelineEnv) -> None:
    name = env.ctx.pipeline.publication
    env.sql(f'drop publication "{name}"; create publication "{name}" for table t')


def unpublish(env: PipelineEnv) -> None:
    env.sql(f'drop publication "{env.ctx.pipeline.publication}"')


@contextmanager
def stopped_before(number: int, attack: Callable[[], None]) -> Iterator[Iterator[int]]:
    """Let the attack happen before the nth statement to the source; the iterator yields the next one's number."""
    statements, lock = itertools.count(1), RLock()  # the peek is pulled by a thread of its own

    def counted(execute: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(self: Any, *arguments: Any, **named: Any) -> Any:
            with lock:
                ours = isinstance(getattr(self, "connection", self), (SourceSession, ArrowSession))
                if ours and next(statements) == number:
                    attack()
            return execute(self, *arguments, **named)

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", counted(psycopg.Cursor.execute))
        patch.setattr(ArrowSession, "_statement", counted(ArrowSession._statement))
        yield statements


def start_over(env: PipelineEnv) -> None:
    """Give the pipeline a fresh slot from which it reads on, as if it had never had another."""
    pipeline = env.ctx.pipeline
    env.sql(f"select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '{pipeline.slot}'")
    make(env)
    if not env.sql(f"select oid::text from pg_publication where pubname = '{pipeline.publication}'"):
        env.sql(f'create publication "{pipeline.publication}" for table t')
    ((point, oid),) = env.sql(
        "select confirmed_flush_lsn::text, p.oid::text from pg_replication_slots s, pg_publication p "
        f"where slot_name = '{pipeline.slot}' and pubname = '{pipeline.publication}'"
    )
    env.ledger.execute(
        "delete from penstock.window; update penstock.pipeline "
        f"set consistent_point = '{point}', position = '{point}', publication_oid = {oid}"
    )


def landed(env: PipelineEnv) -> set[int]:
    ctx = env.ctx
    rows: Iterator[dict[str, Any]] = (
        row
        for window in ctx.ledger.windows.all(env.name)
        for entry in window.files
        for row in ctx.landing.read(entry.path).to_pylist()
    )
    return {int(row["new"]["id"]) for row in rows}


def halted(env: PipelineEnv) -> str | None:
    """Capture one window; return the name under which it stopped."""
    try:
        capture.capture_window(env.ctx, patterns=True)
    except PenstockError as error:
        return error.slug
    return None


@pytest.mark.parametrize(
    ("attack", "slugs"),
    [
        pytest.param(consume, {"slot-ahead"}, id="consumed"),
        pytest.param(advance, {"slot-ahead"}, id="advanced", marks=pytest.mark.slow),
        pytest.param(drop, {"slot-missing"}, id="dropped", marks=pytest.mark.slow),
        pytest.param(drop_and_make, {"slot-ahead"}, id="dropped and made again", marks=pytest.mark.slow),
        pytest.param(
            publish_again, {"publication-missing"}, id="publication dropped and made again", marks=pytest.mark.slow
        ),
        pytest.param(unpublish, {"publication-missing"}, id="publication dropped", marks=pytest.mark.slow),
    ],
)
def test_whatever_is_done_to_the_slot_before_any_statement_of_a_capture_no_row_is_missed_unsaid(
    env16: PipelineEnv, attack: Attack, slugs: set[str]
) -> None:
    begin(env16, "create table t (id int primary key)")
    start_over(env16)
    halts: list[str | None] = []
    for number in itertools.count(1):
        env16.flush(f"insert into t values ({number}), (-{number})")
        before = env16.ctx.ledger.pipelines.get(env16.name).position
        with stopped_before(number, lambda: attack(env16)) as statements:
            slug = halted(env16)
        if next(statements) <= number:
            break
        whole = {number, -number} <= landed(env16)
        assert whole or env16.ctx.ledger.pipelines.get(env16.name).position == before, (
            f"rows missed at statement {number}"
        )
        assert whole or slug in slugs, f"nothing said at statement {number}"
        if slug is None and attack is not advance and attack is not consume:
            assert halted(env16) in slugs, f"nothing said after statement {number}"
        assert slug is None or slug in slugs, f"the wrong name at statement {number}"
        assert all(table.left_lsn is None for table in env16.tables), (
            f"tables of a publication that is gone were taken for tables that left, at statement {number}"
        )
        halts.append(slug)
        start_over(env16)
    assert len(halts) > 10
    assert halts[0] in slugs
