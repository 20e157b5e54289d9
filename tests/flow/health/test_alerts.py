"""When an alarm is told, to whom, and in which words. Pure."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.flow.health.alerts import Alert, alerts
from tests.flow.health.cases import NOW, alarm, policy

RULES = policy(
    warn={"channels": ["mail"], "repeat": "1d"},
    critical={"channels": ["mail", "pager:night"], "repeat": "1h"},
    runbooks="https://runbooks.example.com/penstock/",
)


def due(**changes: Any) -> list[Alert]:
    return alerts([alarm(**changes)], RULES, NOW)


def sent(ago: timedelta, level: str = "warn") -> dict[str, Any]:
    return {"last_notified_at": NOW - ago, "last_notified_level": level}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "opened"),
        (sent(timedelta(minutes=5)), None),
        (sent(timedelta(hours=23)), None),
        (sent(timedelta(days=1)), "lasts"),
        ({"level": "critical", **sent(timedelta(minutes=5))}, "raised"),
        ({"level": "critical", **sent(timedelta(minutes=59), "critical")}, None),
        ({"level": "critical", **sent(timedelta(hours=1), "critical")}, "lasts"),
        ({"level": "warn", **sent(timedelta(hours=2), "critical")}, None),
        ({"closed_at": NOW, **sent(timedelta(minutes=5))}, "closed"),
    ],
)
def test_an_alarm_is_sent_when_it_opens_rises_lasts_and_ends(changes: Any, expected: str | None) -> None:
    assert [alert.happening for alert in due(**changes)] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("changes", "channels"),
    [
        ({"level": "warn"}, ("mail",)),
        ({"level": "critical"}, ("mail", "pager:night")),
        ({"level": "warn", "closed_at": NOW, **sent(timedelta(0), "critical")}, ("mail", "pager:night")),
    ],
)
def test_each_level_has_its_channels_and_an_end_goes_to_those_that_had_the_alarm(changes: Any, channels: Any) -> None:
    assert [alert.channels for alert in due(**changes)] == [channels]


def test_the_worst_is_sent_first() -> None:
    both = alerts([alarm(), alarm("slot-lost", "critical")], RULES, NOW)

    assert [alert.alarm.slug for alert in both] == ["slot-lost", "slot-retained"]


def test_an_alert_says_what_since_when_the_numbers_what_comes_next_and_where_to_read_on() -> None:
    (alert,) = due()

    assert alert.title == "[penstock] WARN: slot-retained penstock_shop (shop)"
    assert at(alert).text().splitlines() == [
        "what: slot penstock_shop keeps 2.0 GiB of WAL, the warn limit is 1.0 GiB.",
        "level: warn",
        "since: 2026-11-21 10:00:00 UTC, for 2 h",
        "numbers: retained 2.0 GiB",
        "next: it does not grow.",
        "gets worse: as fast as the source writes",
        "runbook: https://runbooks.example.com/penstock/slot-retained.md",
        "DAG: shop.capture https://airflow.example.com/dags/shop.capture",
        "page: https://airflow.example.com/plugin/cdc#shop",
    ]


def at(alert: Alert, **changes: Any) -> Alert:
    """The alert as Airflow sends it, which knows its own address."""
    return replace(alert, links=replace(alert.links, base="https://airflow.example.com/", **changes))


def test_an_alert_leads_to_the_runbook_on_the_page_the_run_and_its_log() -> None:
    ran = {"dag": "shop.merge", "run_id": "asset__2026 +00:00", "task": "spark", "unmerged_bytes": 8700000000}
    (alert,) = due(slug="merge-failing", numbers={**ran, "follows": ["lake-stale: readers see the source of 2 h ago"]})

    lines = at(alert, published=None).text().splitlines()

    assert "numbers: unmerged 8.1 GiB" in lines
    assert "follows: lake-stale: readers see the source of 2 h ago." in lines
    assert "runbook: https://airflow.example.com/cdc/runbooks/merge-failing" in lines
    run = "https://airflow.example.com/dags/shop.merge/runs/asset__2026%20%2B00%3A00"
    assert lines[-3:-1] == [f"run: {run}", f"log: {run}/tasks/spark"]


def test_the_end_of_an_alarm_does_not_threaten() -> None:
    (alert,) = due(closed_at=NOW, **sent(timedelta(hours=1)))

    assert alert.title.startswith("[penstock] closed: slot-retained")
    assert "next:" not in alert.text()
    assert "closed at 2026-11-21 12:00:00 UTC" in alert.text()
