"""Alerts arrive: by HTTP and by mail, through Airflow connections, and what is not taken is told again."""

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
from tests.flow.health.alert_receivers import (
    Hook,
    Mailbox,
    http_receiver,
    otlp_receiver,
    smtp_receiver,
    statsd_receiver,
)
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
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com")
    web = f"json://reader:{SECRET}@127.0.0.1:{hook.port}/"
    mail = f"mailto://127.0.0.1:{mailbox.port}/?smtp=127.0.0.1&from=penstock@example.com&to=oncall@example.com"
    connect(monkeypatch, "hook", web)
    connect(monkeypatch, "people", json.dumps([{"path": web, "tag": "web"}, {"path": mail, "tag": "mail"}]))
    connect(monkeypatch, "both", f"{web}\n  {mail}\n")


def connect(monkeypatch: pytest.MonkeyPatch, name: str, password: str, **extra: Any) -> None:
    value = json.dumps({"conn_type": "generic", "password": password, "extra": extra})
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", value)


def alert(*names: str, **changes: Any) -> Alert:
    (found,) = alerts([alarm(**changes)], policy(warn={"channels": list(names)}), NOW)
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
        "/cdc/runbooks/slot-retained",
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


def test_a_password_may_hold_one_url_a_line(channels: None, hook: Hook, mailbox: Mailbox) -> None:
    assert deliver(alert("both")).taken == 2

    assert (len(hook.posts), len(mailbox.mails)) == (1, 1)


@pytest.mark.parametrize(
    ("password", "problem"),
    [
        (None, "to be an Airflow connection with apprise URLs"),
        ("", "got an empty password"),
        ("s3cret", "to hold an apprise URL that is understood, got none"),
        ("no-such-scheme://s3cret", "to hold an apprise URL that is understood, got none"),
        ('{"tag": "s3cret"}', "got JSON of another form"),
        ("[s3cret", "got JSON of another form"),
        ('["s3cret"]', "got JSON of another form"),
    ],
)
def test_a_channel_that_is_not_defined_well_is_named(
    password: str | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if password is not None:
        connect(monkeypatch, "hook", password)
    done = deliver(alert("hook"))

    assert done.taken == 0
    (said,) = done.failures
    assert "channel hook" in said
    assert problem in said
    assert "s3cret" not in said


def test_urls_in_the_clear_extra_are_refused_with_the_way_to_change_it(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, "hook", "", config={"path": f"json://reader:{SECRET}@127.0.0.1:{hook.port}/"})
    done = deliver(alert("hook"))

    (said,) = done.failures
    assert "got them in its extra, which Airflow shows in clear" in said
    assert "airflow connections add hook --conn-type generic --conn-password" in said
    assert SECRET not in said
    assert (done.taken, hook.posts) == (0, [])


SEND_GAUGES = """
from types import SimpleNamespace
from penstock.orchestration.notifications import send_capture, send_cut, send_gauges, send_task
send_gauges("shop", {"penstock.slot.retained_bytes": 4096.0})
met = {"schema": "public", "name": "t", "counts": {"update_missing": 3}}
send_cut("shop", SimpleNamespace(tables=[met, {"schema": "public", "name": "u"}]), ())
send_capture("shop", {"windows": 1, "changes": 7, "transactions": 2, "bytes": 900, "seconds": 1.5})
send_task("shop.merge", "spark", seconds=2.0, cpu_seconds=0.25)
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
        while len(received) < 9:
            each = listening.recv(4096).decode()
            received += [each] if "penstock" in each else []  # Airflow has metrics of its own

    assert received == [
        "airflow.penstock.slot.retained_bytes,pipeline=shop:4096.0|g",
        "airflow.penstock.merge.update_missing,pipeline=shop,table=public.t:3|c",
        "airflow.penstock.capture.windows,pipeline=shop:1|c",
        "airflow.penstock.capture.changes,pipeline=shop:7|c",
        "airflow.penstock.capture.transactions,pipeline=shop:2|c",
        "airflow.penstock.capture.bytes,pipeline=shop:900|c",
        "airflow.penstock.capture.milliseconds,pipeline=shop:1500|c",
        "airflow.penstock.task.milliseconds,dag_id=shop.merge,task_id=spark:2000|c",
        "airflow.penstock.task.cpu_milliseconds,dag_id=shop.merge,task_id=spark:250|c",
    ]


@pytest.mark.slow
def test_gauges_and_counts_arrive_at_an_opentelemetry_receiver_by_airflows_own_metrics() -> None:
    with otlp_receiver() as collector:
        settings = {
            "AIRFLOW__METRICS__OTEL_ON": "True",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.port}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "PYTHONPATH": str(Project.here().root / "plugins"),
        }
        subprocess.run([sys.executable, "-c", SEND_GAUGES], env=os.environ | settings, check=True, capture_output=True)

    received = {name: points for name, points in collector.points.items() if ".penstock." in name}
    task = {"dag_id": "shop.merge", "task_id": "spark"}
    assert received == {
        "airflow.penstock.slot.retained_bytes": [("gauge", {"pipeline": "shop"}, 4096.0)],
        "airflow.penstock.merge.update_missing": [("sum", {"pipeline": "shop", "table": "public.t"}, 3)],
        **{
            f"airflow.penstock.capture.{name}": [("sum", {"pipeline": "shop"}, value)]
            for name, value in {
                "windows": 1,
                "changes": 7,
                "transactions": 2,
                "bytes": 900,
                "milliseconds": 1500,
            }.items()
        },
        "airflow.penstock.task.milliseconds": [("sum", task, 2000)],
        "airflow.penstock.task.cpu_milliseconds": [("sum", task, 250)],
    }
