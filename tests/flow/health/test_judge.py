"""From what a check sees to the alarms that should be open. Pure: no server, no clock."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import timedelta
from inspect import get_annotations, getmembers, isfunction
from types import ModuleType
from typing import Any

import pytest

from penstock.conditions import ALARMS, LEVELS
from penstock.flow.health import rules_lake, rules_server, rules_slot, rules_tables
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.input import ClockReading, HealthInput, SlotInput
from penstock.flow.health.judge import LAKE_RULES, RULES
from penstock.ledger.health import Finding
from penstock.ledger.windows import WindowPace
from penstock.lsn import Lsn
from penstock.source.refusals import Refusal
from penstock.source.server_info import OpenTransaction
from penstock.source.slot import SlotFacts
from tests.flow.health.cases import (
    GIB,
    MIB,
    NOW,
    OTHER,
    OWN,
    RECORD,
    SHOP,
    alarm,
    behind,
    failed,
    levels,
    policy,
    remembered,
    verdict,
)

PAUSED = {"capture": DagState(paused=True)}


@pytest.mark.parametrize(
    ("module", "facts", "listed"),
    [
        (rules_slot, SlotInput, RULES),
        (rules_server, SlotInput, RULES),
        (rules_lake, HealthInput, {*LAKE_RULES, rules_lake.readiness}),
        (rules_tables, HealthInput, LAKE_RULES),
    ],
)
def test_every_rule_of_a_module_is_judged_by(module: ModuleType, facts: type, listed: Collection[Any]) -> None:
    functions = [each for _, each in getmembers(module, isfunction) if each.__module__ == module.__name__]
    form = {"facts": facts, "return": Iterator[Finding]}
    rules = [each for each in functions if get_annotations(each, eval_str=True) == form]

    assert rules
    assert [each.__name__ for each in rules if each not in listed] == []


def test_a_healthy_pipeline_has_no_alarm() -> None:
    found = verdict(OWN)

    assert (levels(found), found.drops, found.drain) == ({}, (), False)


def test_a_table_that_refuses_the_applications_updates_is_one_alarm_with_the_statement_that_ends_it() -> None:
    parts = [Refusal(n, "s", f"t{n}", 1, "s", "t", "generated", ["g"], keyed=True, full_rows=False) for n in (2, 3)]
    found = verdict(OWN, refused=parts)

    assert levels(found) == {"no-usable-identity": "critical"}
    (finding,) = found.findings
    assert finding.subject == "s.t"
    assert "does not send: g (partition s.t2, s.t3)" in finding.message
    assert finding.next.startswith('run: alter table "s"."t2" replica identity default; alter table "s"."t3" replica')
    assert levels(verdict(OWN, refused=parts, record=None)) == {}


@pytest.mark.parametrize(
    ("retained", "expected"),
    [(GIB - 1, {}), (GIB, {"slot-retained": "warn"}), (5 * GIB, {"slot-retained": "critical"})],
)
def test_without_a_known_budget_the_customary_limits_hold(retained: int, expected: dict[str, str]) -> None:
    assert levels(verdict(behind(retained=retained, unread=0))) == expected


def test_the_two_numbers_are_two_alarms() -> None:
    assert levels(verdict(behind(retained=2 * GIB, unread=10))) == {"slot-retained": "warn"}
    assert levels(verdict(behind(retained=6 * GIB, unread=2 * GIB))) == {
        "slot-retained": "critical",
        "slot-unread": "warn",
    }


@pytest.mark.parametrize(
    ("server", "health", "limits"),
    [
        ({}, {}, (1 * GIB, 5 * GIB, 5 * GIB)),
        ({"max_slot_wal_keep_size": 100 * GIB}, {}, (25 * GIB, 50 * GIB, 50 * GIB)),
        ({"max_slot_wal_keep_size": 100 * GIB}, {"critical": {"share": 0.9}}, (25 * GIB, 90 * GIB, 80 * GIB)),
        ({"max_slot_wal_keep_size": 100 * GIB}, {"disk": "40 GiB"}, (10 * GIB, 20 * GIB, 20 * GIB)),
        ({"max_slot_wal_keep_size": 100 * GIB}, {"warn": {"bytes": "2 GiB"}}, (2 * GIB, 50 * GIB, 50 * GIB)),
        ({}, {"critical": {"bytes": "512 MiB"}}, (512 * MIB, 512 * MIB, 512 * MIB)),
    ],
)
def test_a_limit_is_the_smallest_of_what_is_known(server: Any, health: Any, limits: tuple[int, ...]) -> None:
    found = verdict(OWN, rules=policy(**health), **server).facts.limits

    assert (found.warn, found.critical, found.drop) == limits


@pytest.mark.parametrize(("retained", "held", "expected"), [
    (GIB - 50 * MIB, None, None),
    (GIB - 50 * MIB, "warn", "warn"),
    (GIB - 150 * MIB, "warn", None),
    (5 * GIB - 50 * MIB, "warn", "warn"),
    (5 * GIB - 50 * MIB, "critical", "critical"),
])  # fmt: skip
def test_an_alarm_that_is_open_closes_only_well_below_its_limit(retained: int, held: Any, expected: Any) -> None:
    open_ones = [alarm(level=held)] if held else []

    assert levels(verdict(behind(retained=retained, unread=0), alarms=open_ones)).get("slot-retained") == expected


def test_a_slot_that_will_be_lost_at_the_next_checkpoint_is_critical() -> None:
    assert levels(verdict(replace(OWN, wal_status="unreserved"))) == {"slot-unreserved": "critical"}


@pytest.mark.parametrize("reason", ["wal_removed", "idle_timeout", "rows_removed", "wal_level_insufficient"])
def test_a_lost_slot_is_one_alarm_that_names_the_reason_and_the_way_out(reason: str) -> None:
    found = verdict(behind(retained=9 * GIB, wal_status="lost", invalidation=reason))

    assert levels(found) == {"slot-lost": "critical"}
    assert reason in found.findings[0].message
    assert "shop.recover" in found.findings[0].next


def test_a_slot_that_is_gone_is_missed_only_if_there_was_one() -> None:
    assert levels(verdict()) == {"slot-missing": "critical"}
    assert levels(verdict(record=replace(RECORD, position=None, state="new"))) == {}
    assert levels(verdict(record=None)) == {}


def test_a_slot_that_health_dropped_itself_is_not_missed_again() -> None:
    halted = replace(RECORD, state="halted", halted_slug="slot-dropped", halted_reason="x")

    assert levels(verdict(record=halted)) == {"pipeline-halted": "critical"}


def test_a_confirmed_position_that_stands_still_is_reported_since_when() -> None:
    slot = behind(retained=MIB)
    found = verdict(slot, last={slot.name: remembered(slot, 900)})

    assert levels(found) == {"slot-stalled": "warn"}
    assert found.findings[0].since == NOW - timedelta(seconds=900)
    assert levels(verdict(slot, last={slot.name: remembered(slot, 3600)})) == {"slot-stalled": "critical"}


@pytest.mark.parametrize("changes", [{"unread": 0}, {"confirmed": Lsn(5)}])
def test_a_position_stands_still_only_while_there_is_something_to_read(changes: Any) -> None:
    slot = behind(retained=MIB)

    assert levels(verdict(replace(slot, **changes), last={slot.name: remembered(slot, 3600)})) == {}


def test_without_a_schedule_nothing_stands_still() -> None:
    slot = behind(retained=MIB)
    unscheduled = SHOP.model_copy(update={"capture": SHOP.capture.model_copy(update={"schedule": None})})

    assert levels(verdict(slot, pipeline=unscheduled, last={slot.name: remembered(slot, 10**6)})) == {}


@pytest.mark.parametrize(("timeout", "level"), [(0, None), (180, None), (179, "warn"), (60, "critical")])
def test_an_idle_timeout_must_leave_room_for_a_failed_run(timeout: int, level: str | None) -> None:
    assert levels(verdict(OWN, idle_slot_timeout=timeout)).get("slot-idle-timeout") == level


def test_a_slot_that_has_idled_half_its_time_away_is_critical() -> None:
    slot = replace(OWN, inactive_since=NOW - timedelta(seconds=301))

    assert levels(verdict(slot, idle_slot_timeout=600)) == {"slot-idle-timeout": "critical"}


@pytest.mark.parametrize(("age", "level"), [(49_999_999, None), (50_000_000, "warn"), (200_000_000, "critical")])
def test_an_old_catalog_xmin_is_reported(age: int, level: str | None) -> None:
    assert levels(verdict(replace(OWN, catalog_xmin_age=age))).get("catalog-xmin-old") == level


def test_decoding_by_way_of_the_disk_is_reported_when_it_is_much() -> None:
    def spilled(size: int) -> SlotFacts:
        return replace(OWN, spill_bytes=size, total_bytes=100 * MIB)

    assert levels(verdict(spilled(10))) == {}
    assert levels(verdict(spilled(70 * MIB))) == {"decoding-spills": "warn"}


def test_a_paused_capture_is_worse_the_more_waits() -> None:
    assert levels(verdict(OWN, airflow=PAUSED)) == {"capture-paused": "warn"}
    assert levels(verdict(behind(retained=2 * GIB), airflow=PAUSED))["capture-paused"] == "critical"


def test_a_capture_that_fails_is_reported_since_when() -> None:
    found = verdict(OWN, outcomes=[failed("capture", ago=3600, slug="slot-in-use")])

    assert [(each.slug, each.since) for each in found.findings] == [("capture-failing", NOW - timedelta(hours=1))]


def test_a_queue_that_grows_while_capture_works_is_reported() -> None:
    now = behind(retained=600 * MIB)
    history = [
        remembered(behind(retained=(600 - 100 * n) * MIB), 300 * n, flushed_lsn=Lsn(100 * GIB - 200 * n * MIB))
        for n in (1, 2, 3)
    ]
    slow = [WindowPace(10 * MIB, None, 100.0)]

    assert levels(verdict(now, history=history, rates=slow)) == {"capture-too-slow": "warn"}
    assert levels(verdict(now, history=history, rates=[WindowPace(1000 * MIB, None, 10.0)])) == {}
    assert levels(verdict(now, history=history[:2], rates=slow)) == {}


def test_an_inactive_slot_of_another_owner_is_reported_when_it_keeps_much_for_long() -> None:
    def found(slot: Any, ago: int) -> dict[str, str]:
        return levels(verdict(OWN, slot, last={slot.name: remembered(slot, ago)}))

    slot = behind(OTHER, retained=2 * GIB)
    assert found(slot, 86400) == {"slot-abandoned": "warn"}
    assert found(slot, 3600) == {}
    assert found(behind(OTHER, retained=MIB), 86400) == {}
    assert found(replace(slot, active=True), 86400) == {}
    assert found(behind(OTHER, retained=5 * GIB, slot_type="physical"), 86400) == {"slot-abandoned": "critical"}


def test_another_pipelines_slot_is_left_to_its_own_health_check() -> None:
    slot = behind(OTHER, retained=9 * GIB)

    assert levels(verdict(OWN, slot, last={slot.name: remembered(slot, 10**6)}, others=frozenset({slot.name}))) == {}


@pytest.mark.parametrize("changes", [{"slots_taken": 19}, {"senders_taken": 20}])
def test_few_free_slots_or_senders_are_reported(changes: Any) -> None:
    assert levels(verdict(OWN, **changes)) == {"slots-nearly-full": "warn"}


def transaction(**changes: Any) -> OpenTransaction:
    return replace(OpenTransaction(42, "batch", "crm", "nightly", 3600.0, None, 5), **changes)


@pytest.mark.parametrize(
    ("open_one", "expected"),
    [
        (transaction(), {"transaction-open-long": "warn"}),
        (transaction(age_seconds=3599.0), {}),
        (transaction(pid=None, prepared="g"), {"transaction-prepared-long": "warn"}),
        (transaction(age_seconds=None), {}),
        (transaction(age_seconds=None, xids=1_000_000), {"transaction-open-long": "warn"}),
    ],
)
def test_a_transaction_that_is_open_for_long_is_named(open_one: OpenTransaction, expected: dict[str, str]) -> None:
    found = verdict(OWN, transactions=(open_one,))

    assert levels(found) == expected
    assert all('role "batch" in database "crm"' in each.message for each in found.findings)


@pytest.mark.parametrize(
    ("feedback", "slot", "expected"), [(True, "phys", {}), (False, "phys", "x"), (True, None, "x"), (False, None, "x")]
)
def test_a_standby_must_report_to_its_primary_what_the_slot_needs(feedback: bool, slot: Any, expected: Any) -> None:
    found = levels(verdict(OWN, in_recovery=True, standby_feedback=feedback, primary_slot_name=slot))

    assert found == (expected and {"standby-feedback-off": "critical"})


def test_a_synchronised_slot_cannot_be_read_on_its_standby() -> None:
    around = {"in_recovery": True, "standby_feedback": True, "primary_slot_name": "phys"}

    assert levels(verdict(replace(OWN, synced=True), **around)) == {"slot-synced": "critical"}
    assert levels(verdict(replace(OWN, synced=True))) == {}  # after the promotion it is an ordinary one


def test_a_server_that_does_not_know_since_when_a_slot_rests_is_remembered_for() -> None:
    last = remembered(OWN, 500, inactive_since=NOW - timedelta(seconds=800))

    assert verdict(OWN, last={OWN.name: last}).facts.samples[OWN.name].inactive_since == NOW - timedelta(seconds=800)
    assert verdict(OWN).facts.samples[OWN.name].inactive_since == NOW
    moved = replace(last, confirmed_lsn=Lsn(5))
    assert verdict(OWN, last={OWN.name: moved}).facts.samples[OWN.name].inactive_since == NOW
    assert verdict(replace(OWN, active=True), last={OWN.name: last}).facts.samples[OWN.name].inactive_since is None


@pytest.mark.parametrize(
    ("changes", "drains"),
    [
        ({}, True),
        ({"airflow": PAUSED}, False),
        ({"record": replace(RECORD, state="halted", halted_slug="slot-ahead")}, False),
        ({"rules": policy(drain=False)}, False),
    ],
)
def test_a_critical_slot_is_drained_unless_a_person_has_stopped_capture(changes: Any, drains: bool) -> None:
    assert verdict(behind(retained=6 * GIB), **changes).drain is drains


def test_the_forecast_says_when_the_next_limit_is_reached() -> None:
    history = [remembered(behind(retained=GIB), 1024)]
    (finding, _) = verdict(behind(retained=2 * GIB), history=history).findings

    assert finding.next == "at 1.0 MiB/s it reaches the critical limit (5.0 GiB) in 51 min 12 s"


def test_critical_findings_come_first_and_every_finding_is_in_the_catalogue() -> None:
    found = verdict(behind(retained=6 * GIB), airflow=PAUSED, slots_taken=20, transactions=(transaction(),))

    assert [each.level for each in found.findings] == sorted(each.level for each in found.findings)
    for each in found.findings:
        assert LEVELS.index(each.level) <= LEVELS.index(ALARMS[each.slug].level)


@pytest.mark.parametrize(
    ("source", "ledger", "slow", "found"),
    [
        (0, 0, 0, {}),
        (20, -5, 0, {}),
        (90, 0, 0, {"source": "the source's clock is 1 min 30 s ahead of the ledger's"}),
        (-3600, 0, 0, {"source": "the source's clock is 1 h behind the ledger's"}),
        (90, 90, 0, {"worker": "this worker's clock is 1 min 30 s behind the ledger's"}),
        (0, -60, 0, dict.fromkeys(("worker", "source"), "1 min ahead of the ledger's")),
        (90, 0, 70, {}),
    ],
    ids=[
        "alike",
        "near",
        "source ahead",
        "source behind",
        "worker behind",
        "ledger behind",
        "a slow answer is no clock",
    ],
)
def test_a_clock_that_is_not_the_ledgers_is_named(source: int, ledger: int, slow: int, found: dict[str, str]) -> None:
    def reading(by: int) -> ClockReading:
        return ClockReading(NOW + timedelta(seconds=by + slow), NOW, NOW + timedelta(seconds=slow))

    findings = verdict(OWN, source_clock=reading(source), clock=reading(ledger)).findings

    assert {each.subject: each.slug for each in findings} == dict.fromkeys(found, "clocks-differ")
    assert all(found[each.subject] in each.message for each in findings)
