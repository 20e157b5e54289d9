from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.conditions import Level
from penstock.errors import Trouble
from penstock.ledger import Ledger
from penstock.ledger.health import Finding, SlotSample
from penstock.lsn import Lsn
from stack.servers.postgres import Database
from tests.ledger.conftest import START, capture, publish

THEN = datetime(2026, 11, 21, 9, tzinfo=UTC)
NOW = THEN + timedelta(minutes=5)
SAMPLE = SlotSample(
    at=THEN,
    slot="s",
    own=True,
    slot_type="logical",
    database="app",
    active=False,
    confirmed_lsn=Lsn(2),
    restart_lsn=Lsn(1),
    flushed_lsn=Lsn((1 << 64) - 1),
    unread=7,
    retained=8,
    wal_status="reserved",
    safe_wal_size=None,
    invalidation=None,
    inactive_since=None,
    unchanged_since=THEN,
    catalog_xmin_age=3,
    spill_bytes=0,
    total_bytes=10,
    details={"warn": 100},
)


def see(ledger: Ledger, name: str, level: Level = "warn", at: datetime = THEN, subject: str = "s") -> None:
    found = Finding("slot-retained", subject, level, level, numbers={"retained": 8})
    ledger.health.reconcile_alarms(name, [found], judged=(), at=at)


def close(ledger: Ledger, name: str, at: datetime, subjects: list[str] | None = None) -> int:
    return ledger.health.reconcile_alarms(name, [], judged=["slot-retained"], subjects=subjects, at=at)


def test_samples_come_back_as_they_were(ledger: Ledger, running: str) -> None:
    later = replace(SAMPLE, at=NOW, inactive_since=THEN)
    other = replace(SAMPLE, slot="other", own=False, database=None, slot_type="physical")

    ledger.health.record_slot_samples(running, [SAMPLE, later, other])

    assert ledger.health.slot_samples(running, "s") == [later, SAMPLE]
    assert ledger.health.slot_samples(running, "s", since=NOW) == [later]
    assert ledger.health.slot_samples(running, "s", "other", "never seen", limit=1) == [other, later]


def test_an_alarm_seen_twice_is_one_alarm(ledger: Ledger, running: str) -> None:
    see(ledger, running)
    see(ledger, running, "critical", NOW)

    (alarm,) = ledger.health.alarms(running)
    assert (alarm.level, alarm.opened_at, alarm.seen_at, alarm.numbers) == ("critical", THEN, NOW, {"retained": 8})


def test_an_alarm_opens_again_after_it_was_closed(ledger: Ledger, running: str) -> None:
    see(ledger, running)
    close(ledger, running, NOW)
    assert ledger.health.alarms(running) == []

    see(ledger, running, at=NOW)
    assert [alarm.closed_at for alarm in ledger.health.alarms(running, open_only=False)] == [None, NOW]


def test_what_is_judged_and_not_found_again_ends_and_nothing_else(ledger: Ledger, running: str) -> None:
    def open_now() -> list[str]:
        return sorted(f"{each.slug} {each.subject}" for each in ledger.health.alarms(running))

    found = [Finding(slug, subject, "warn", "it is") for slug in ("a", "b") for subject in ("s", "t")]
    assert ledger.health.reconcile_alarms(running, found, judged=["a", "b"], at=THEN) == 0

    assert ledger.health.reconcile_alarms(running, found[:1], judged=["a"], at=NOW) == 1
    assert open_now() == ["a s", "b s", "b t"]
    assert ledger.health.reconcile_alarms(running, [], judged=["a", "b"], subjects=["t"], at=NOW) == 1
    assert open_now() == ["a s", "b s"]
    assert ledger.health.reconcile_alarms(running, [], judged=[], at=NOW) == 0


def test_the_end_of_an_alarm_that_was_sent_is_still_to_be_sent(ledger: Ledger, running: str) -> None:
    see(ledger, running)
    (alarm,) = ledger.health.alarms(running)
    ledger.health.note_alert_sent(alarm.number, at=THEN)
    close(ledger, running, NOW)

    (closed,) = ledger.health.alarms(running)
    assert (closed.closed_at, closed.last_notified_at, closed.last_notified_level) == (NOW, THEN, "warn")
    ledger.health.note_alert_sent(closed.number, at=NOW)
    assert ledger.health.alarms(running) == []


def test_old_samples_and_closed_alarms_are_forgotten(ledger: Ledger, running: str, control: Database) -> None:
    ledger.health.record_slot_samples(running, [SAMPLE, replace(SAMPLE, at=NOW)])
    see(ledger, running)
    close(ledger, running, THEN)
    see(ledger, running)

    ledger.health.trim(running, before=NOW)

    assert [sample.at for sample in ledger.health.slot_samples(running, "s")] == [NOW]
    assert [alarm.closed_at for alarm in ledger.health.alarms(running, open_only=False)] == [None]


def test_the_newest_windows_show_how_fast_capture_reads(ledger: Ledger, running: str) -> None:
    for from_ in (START, START + 10):
        capture(ledger, running, from_, from_ + 10, seconds=2.0)

    assert [(pace.wal_bytes, pace.seconds) for pace in ledger.windows.recent(running, 20)] == [(10, 2.0)] * 2


def test_a_look_notes_how_the_lake_stands_and_counts_the_cuts_since_the_one_before(ledger: Ledger, ready: str) -> None:
    def looked() -> dict[str, list[Any]]:
        ledger.health.record_lake_sample(ready, at=NOW, as_of=THEN)
        with ledger.page.panels() as panel:
            return panel.series(ready, since=THEN, step=timedelta(days=36500))

    first = looked()
    ledger.outcomes.spent(ready, "merge", seconds=5, cpu_seconds=3)
    ledger.health.record_lake_sample(ready, at=NOW, as_of=THEN)
    ledger.outcomes.spent(ready, "merge", seconds=5, cpu_seconds=3)
    capture(ledger, ready, int(START), int(START) + 8)
    publish(ledger, ready, Lsn(START + 8), [])
    ledger.tables.stop(ready, {2: Trouble.usual("schema-change", "it changed")})
    last = looked()

    assert [first[each] for each in ("behind_median_seconds", "behind_worst_seconds", "cuts")] == [[300], [300], [0]], (
        "cuts of before are not counted"
    )
    assert (last["cuts"], last["merge_cpu_seconds"]) == ([1], [3])
    assert last["cut_seconds"][0] < 60
    assert last["landing_bytes"][0] > 0
