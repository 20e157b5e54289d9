"""The summary is sent once for each time of its schedule and tells what was done; a healthy run pings the heartbeat."""

import json
import logging
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from penstock.errors import Trouble
from penstock.flow.capture import run as capture
from penstock.flow.health import summary
from tests.flow.health.alert_receivers import http_receiver
from tests.flow.health.cases import SHOP
from tests.flow.health.conftest import Watched

EIGHT = datetime(2026, 11, 22, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "newest"),
    [
        (EIGHT, EIGHT),
        (EIGHT + timedelta(seconds=30), EIGHT),
        (EIGHT + timedelta(hours=23), EIGHT),
        (EIGHT - timedelta(seconds=1), EIGHT - timedelta(days=1)),
    ],
)
def test_the_summary_that_is_due_is_that_of_the_newest_time(now: datetime, newest: datetime) -> None:
    assert summary.due("0 8 * * *", now) == (newest, newest - timedelta(days=1))


def test_a_summary_is_received_once_however_late_and_often_runs_come(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.orchestration import notifications  # noqa: PLC0415  # after the throw-away home is set

    with http_receiver() as hook:
        channel = {"conn_type": "generic", "password": f"json://127.0.0.1:{hook.port}/"}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(channel))
        watched.policy(info={"channels": ["hook"]})
        env = watched.env
        env.sql("insert into t values (2, 'two'), (3, 'three')")
        capture.capture(env.ctx)
        env.ctx.ledger.events.add(
            env.name, slug="slot-dropped", level="error", message="dropped slot x, because it was lost"
        )
        (table,) = env.tables
        env.ctx.ledger.tables.stop(env.name, {table.oid: Trouble.usual("merge-conflict", "changes met absent rows")})
        watched.check()

        def run(hours: float) -> bool:
            send = partial(notifications.send_info, env.ctx.pipeline)
            return summary.send_summary(env.ctx, send, next_eight + timedelta(hours=hours))

        next_eight = summary.due("0 8 * * *", datetime.now(UTC))[0] + timedelta(days=1)
        assert [run(-24), run(-1), run(0), run(0.1), run(23.9)] == [False, False, True, False, False]
        hook.refusals = 1
        assert [run(26), run(26.1), run(26.2)] == [False, True, False], "what no channel took is sent by the next run"

        title, text = hook.posts[0]["title"], hook.posts[0]["message"]
    assert title == f"[penstock] summary: {env.name}, 1 open alarm"
    assert hook.posts[0]["type"] == "info"
    assert len(hook.posts) == 2
    for line in (
        "state: running, 0 of 1 table ready, 1 paused",
        "freshness: there is no cut yet",
        "rows: 2 changes captured, 0 cuts: 0 inserts, 0 updates, 0 deletes",
        "schema change: none",
        "dropped: dropped slot x, because it was lost",
        "verified: 0 tables or shares found equal, 0 not; 0 of 1 table verified whole",
        "open alarm: table-paused public.t, for ",
    ):
        assert line in text


@pytest.mark.slow
def test_a_run_that_was_killed_while_it_sent_leaves_the_summary_to_a_later_one(watched: Watched) -> None:
    ledger, name = watched.env.ctx.ledger, watched.env.name
    assert not ledger.summaries.claim(name, due=EIGHT, at=EIGHT)
    later = EIGHT + timedelta(days=1)

    assert ledger.summaries.claim(name, due=later, at=later)
    assert not ledger.summaries.claim(name, due=later, at=later + timedelta(minutes=9)), "it may still be at work"
    assert ledger.summaries.claim(name, due=later, at=later + timedelta(minutes=11))
    ledger.summaries.end(name, due=later, sent_at=later)
    assert not ledger.summaries.claim(name, due=later, at=later + timedelta(hours=1))


def beat(heartbeat: str | None) -> tuple[str, ...]:
    from penstock.orchestration import notifications as switch  # noqa: PLC0415  # after the throw-away home is set

    settings = {**SHOP.model_dump(by_alias=True), "health": {"heartbeat": heartbeat}}
    return switch.beat(type(SHOP).model_validate(settings))


def test_a_heartbeat_arrives_at_its_address_and_a_failure_does_not_say_which(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with http_receiver() as hook:
        address = f"http://127.0.0.1:{hook.port}/ping/s3cret"
        assert (beat(None), beat(address)) == ((), ())
        assert hook.paths == ["/ping/s3cret"]
        hook.refusing = True
        refused = beat(address)
    gone = beat(address)

    assert refused == ("expected the address of health.heartbeat to take a ping, got status 500",)
    assert gone == ("expected the address of health.heartbeat to take a ping, got ConnectionRefusedError",)
    assert "s3cret" not in caplog.text


def test_a_heartbeat_may_be_a_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_receiver() as hook:
        channel = {"conn_type": "generic", "password": f"json://127.0.0.1:{hook.port}/"}
        monkeypatch.setenv("AIRFLOW_CONN_HOOK", json.dumps(channel))

        assert beat("hook") == ()
        assert beat("nowhere")[0].startswith("expected channel nowhere to be an Airflow connection")
        assert [post["title"] for post in hook.posts] == ["[penstock] alive: shop"]


@pytest.mark.parametrize(
    "wrong", ["ftp://example.com/s3cret", "https:///s3cret", "https://example.com/ s3cret", "a b s3cret"]
)
def test_a_heartbeat_that_is_neither_is_refused_without_repeating_it(wrong: str) -> None:
    with pytest.raises(ValueError, match="expected") as refused:
        beat(wrong)

    assert "s3cret" not in str(refused.value).partition("[type=")[0]
