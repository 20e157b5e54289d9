"""Alerts arrive: by HTTP and by mail, through Airflow connections, and what is not taken is told again."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.flow.health.alerts import Alert, alerts
from stack import ports
from stack.paths import Project
from tests.flow.health.alert_receivers import Hook, Mailbox, http_receiver, smtp_receiver, statsd_receiver
from tests.flow.health.cases import NOW, alarm, policy

SECRET = "s3cret-of-the-url"


@pytest.fixture
def hook() -> Iterator[Hook]:
    with http_receiver() as hook:
        yield hook


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with smtp_receiver(ports.choose()) as mailbox:
        yield mailbox


@pytest.fixture
def channels(hook: Hook, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connections `hook` and `people`; the second one has a URL for each of two tags."""
    web = f"json://reader:{SECRET}@127.0.0.1:{hook.port}/"
    mail = f"mailto://127.0.0.1:{mailbox.port}/?smtp=127.0.0.1&from=penstock@example.com&to=oncall@example.com"
    connect(monkeypatch, "hook", {"path": web})
    connect(monkeypatch, "people", [{"path": web, "tag": "web"}, {"path": mail, "tag": "mail"}])


def connect(monkeypatch: pytest.MonkeyPatch, name: str, config: Any) -> None:
    value = json.dumps({"conn_type": "apprise", "extra": {"config": config}})
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", value)


def alert(*names: str, **changes: Any) -> Alert:
    (found,) = alerts("shop", [alarm(**changes)], policy(warn={"channels": list(names)}), NOW)
    return found


def deliver(found: Alert) -> Any:
    from penstock.orchestration import notifications  # noqa: PLC0415  # after the throw-away home is set

    return notifications.deliver(found)


def test_an_alert_arrives_by_http_and_by_mail(channels: None, hook: Hook, mailbox: Mailbox) -> None:
    done = deliver(alert("people"))

    assert (done.taken, done.failures) == (2, ())
    (post,), ((subject, text),) = hook.posts, mailbox.mails
    assert post["title"] == "[penstock] WARN: slot-retained penstock_shop (shop)"
    assert post["type"] == "warning"
    for part in (
        "what: slot penstock_shop keeps",
        "since: ",
        "next: ",
        "docs/runbooks/slot-retained.md",
        "/plugin/cdc#shop",
    ):
        assert part in post["message"]
    assert "slot-retained" in subject
    assert "slot penstock_shop keeps" in text


def test_a_tag_chooses_among_the_urls_of_a_connection(channels: None, hook: Hook, mailbox: Mailbox) -> None:
    assert deliver(alert("people:mail")).taken == 1

    assert (len(hook.posts), len(mailbox.mails)) == (0, 1)


def test_the_end_of_an_alarm_is_good_news(channels: None, hook: Hook) -> None:
    deliver(alert("hook", closed_at=NOW, last_notified_at=NOW, last_notified_level="warn"))

    assert hook.posts[0]["type"] == "success"


def test_one_channel_that_is_down_stops_no_other_and_no_secret_is_said(
    channels: None, hook: Hook, mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hook.refusing = True
    done = deliver(alert("hook", "people:mail"))

    assert (done.taken, len(mailbox.mails)) == (1, 1)
    assert done.failures == ("expected channel hook to take an alert, but its JSON did not",)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("config", [None, "not json", {"path": "no-such-scheme://x"}, {"tag": "no path"}])
def test_a_channel_that_is_not_defined_well_is_named(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if config is not None:
        connect(monkeypatch, "hook", config)
    done = deliver(alert("hook"))

    assert done.taken == 0
    assert len(done.failures) == 1
    assert "channel hook" in done.failures[0]


SEND_GAUGES = """
from penstock.orchestration.notifications import send_counts, send_gauges
send_gauges("shop", {"penstock.slot.retained_bytes": 4096.0})
send_counts("shop", {"public.t": {"update_missing": 3}, "public.u": {}})
"""


@pytest.mark.heavy
def test_gauges_and_counts_arrive_at_statsd_by_airflows_own_metrics() -> None:
    with statsd_receiver() as listening:
        settings = {
            "AIRFLOW__METRICS__STATSD_ON": "True",
            "AIRFLOW__METRICS__STATSD_HOST": "127.0.0.1",
            "AIRFLOW__METRICS__STATSD_PORT": str(listening.getsockname()[1]),
            "AIRFLOW__METRICS__STATSD_INFLUXDB_ENABLED": "True",
            "PYTHONPATH": str(Project.here().root / "plugins"),
        }
        subprocess.run([sys.executable, "-c", SEND_GAUGES], env=os.environ | settings, check=True, capture_output=True)
        received: list[str] = []
        while len(received) < 2:
            each = listening.recv(4096).decode()
            received += [each] if "penstock" in each else []  # Airflow has metrics of its own

    assert received == [
        "airflow.penstock.slot.retained_bytes,pipeline=shop:4096.0|g",
        "airflow.penstock.merge.update_missing,pipeline=shop,table=public.t:3|c",
    ]
