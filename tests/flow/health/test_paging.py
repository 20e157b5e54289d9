"""An error that only a person fixes is told at once, not at every run, and its alarm ends when it is fixed."""

import pytest

from penstock.conditions import ALARMS, PAGED
from penstock.errors import LakeError, SourceError
from penstock.flow.health import alarms
from penstock.flow.health.alerts import Alert, Delivery
from penstock.flow.recover import resume, teardown
from tests.flow.health.conftest import Watched

TASK = "shop.capture.windows"


def meet(watched: Watched, slug: str = "source-disk-full", task: str = TASK) -> None:
    tree = SourceError if slug.startswith("source-") else LakeError
    alarms.page(watched.env.ctx, tree(slug, "expected room, got none; make some"), task, watched.deliver)


def delivered(watched: Watched) -> list[tuple[str, str, str]]:
    return [(alert.happening, alert.alarm.slug, alert.level) for alert in watched.delivered]


def test_every_error_that_pages_is_an_alarm_of_the_critical_level() -> None:
    assert {"source-auth", "source-disk-full", "source-corrupt", "decoding-limit"} <= PAGED
    assert {ALARMS[slug].level for slug in PAGED} == {"critical"}


def test_an_error_is_sent_once_and_again_only_at_its_interval(watched: Watched) -> None:
    for _ in range(3):
        meet(watched)
    assert delivered(watched) == [("opened", "source-disk-full", "critical")]
    assert "docs/runbooks/source-disk-full.md" in watched.delivered[0].text()

    watched.policy(critical={"repeat": 1})
    while len(watched.delivered) == 1:
        meet(watched)

    assert delivered(watched)[1] == ("lasts", "source-disk-full", "critical")


def test_it_ends_when_the_task_that_met_it_succeeds_and_not_when_another_does(watched: Watched) -> None:
    meet(watched)

    alarms.task_succeeded(watched.env.ctx, "shop.merge.plan", watched.deliver)
    assert watched.open_alarms() == {"source-disk-full": "critical"}
    alarms.task_succeeded(watched.env.ctx, TASK, watched.deliver)

    assert watched.open_alarms() == {}
    assert [happening for happening, _, _ in delivered(watched)] == ["opened", "closed"]
    meet(watched)
    assert [happening for happening, _, _ in delivered(watched)] == ["opened", "closed", "opened"]


def test_slot_health_neither_closes_nor_repeats_it(watched: Watched) -> None:
    watched.policy(critical={"repeat": 1})
    meet(watched)
    before = len(watched.delivered)

    watched.noise(1)
    for _ in range(3):
        watched.env.sql("select pg_sleep(0.5)")
        watched.check()

    assert watched.open_alarms()["source-disk-full"] == "critical"
    assert [alert for alert in watched.delivered[before:] if alert.alarm.slug == "source-disk-full"] == []


def test_slot_health_sends_again_what_no_channel_has_taken(watched: Watched) -> None:
    def refuse(_: Alert) -> Delivery:
        return Delivery(0, ("expected channel hook to take an alert, but its JSON did not",))

    alarms.page(watched.env.ctx, SourceError("source-corrupt", "expected whole files"), TASK, refuse)
    assert any("[alert-undelivered]" in line for line in watched.env.lines)
    watched.check()

    assert delivered(watched) == [("opened", "source-corrupt", "critical")]


def test_a_source_that_slot_health_has_sent_an_alert_of_gets_no_second_one(watched: Watched) -> None:
    server = watched.env.source.server
    password, server.password = server.password, "not the password"
    try:
        with pytest.raises(SourceError) as refused:
            watched.check()
    finally:
        server.password = password

    alarms.page(watched.env.ctx, refused.value, TASK, watched.deliver)

    assert refused.value.slug == "source-auth"
    assert [slug for _, slug, _ in delivered(watched)] == ["source-unreachable"]
    meet(watched)
    assert [slug for _, slug, _ in delivered(watched)] == ["source-unreachable", "source-disk-full"], (
        "that is other news"
    )


def test_an_alert_is_sent_even_if_the_ledger_cannot_record_it(watched: Watched) -> None:
    watched.env.name = "unknown"
    meet(watched, "source-corrupt")

    assert delivered(watched) == [("opened", "source-corrupt", "critical")]
    assert any("the ledger cannot record" in line for line in watched.env.lines)


def test_a_person_who_has_fixed_it_closes_it_by_resume(watched: Watched) -> None:
    meet(watched, "target-clash", "shop.bootstrap.check")
    resume.resume(watched.env.ctx)
    assert watched.open_alarms() == {}
    watched.check()
    assert [happening for happening, _, _ in delivered(watched)] == ["opened", "closed"]

    resume.resume(watched.env.ctx)
    assert watched.env.lines[-1].startswith("nothing to resume"), "and it says so"
    meet(watched, "target-clash")
    watched.env.ctx.ledger.pipelines.halt(watched.env.name, slug="source-changed", reason="for this test")
    resume.resume(watched.env.ctx)

    assert watched.open_alarms() == {}
    assert watched.env.ctx.ledger.pipelines.get(watched.env.name).state == "running"


def test_nothing_stays_open_for_a_pipeline_that_is_torn_down(watched: Watched) -> None:
    meet(watched)
    teardown.teardown(watched.env.ctx)
    assert watched.open_alarms() == {"source-disk-full": "critical"}, "a dry run"

    teardown.teardown(watched.env.ctx, dry_run=False)

    assert watched.open_alarms() == {}
