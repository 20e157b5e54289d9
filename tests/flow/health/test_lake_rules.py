"""What is judged without the source: freshness, merges, copies, scheduled work, tables, disks. Pure: no server, no clock."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.flow.health import report
from penstock.flow.health.airflow_state import DagState
from penstock.flow.health.input import Disk, HealthInput
from penstock.flow.health.judge import LAKE_RULES
from penstock.flow.health.observe import disks
from penstock.ledger.health import LateWork, OpenCopy
from penstock.ledger.page import PipelineStatus
from tests.flow.health.cases import GIB, NOW, OWN, RECORD, SHOP, alarm, failed, lake_facts, verdict
from tests.shapes.tables import table_record


def ago(**span: float) -> Any:
    return NOW - timedelta(**span)


LAKE = PipelineStatus(
    **{name: getattr(RECORD, name) for name in PipelineStatus.__dataclass_fields__ if hasattr(RECORD, name)},
    **{"cut_lsn": RECORD.position, "cut_at": ago(minutes=1), "captured_at": ago(minutes=1), "as_of": ago(minutes=1)},
    tables=2,
    tables_ready=2,
    slot_name=RECORD.slot,
)
WAITING = {"unmerged_windows": 1, "unmerged_changes": 1200, "unmerged_since": ago(minutes=20)}


def standing(keys: Any = None, lake: Any = None, **changes: Any) -> HealthInput:
    done = LateWork(maintained_at=ago(hours=1), filled_upto=ago(hours=12), sampled_at=NOW)
    shown = replace(LAKE, **{"created_at": ago(days=1), **(lake or {})})
    return lake_facts(keys, **{"lake": shown, "late": done, **changes})


def found(now: HealthInput) -> dict[str, str]:
    """The alarms, with level; each is one of those that its rule may open."""
    findings = [(rule, finding) for rule in LAKE_RULES for finding in rule(now)]
    assert [finding.slug for rule, finding in findings if finding.slug not in LAKE_RULES[rule]] == []
    return {finding.slug: finding.level for _, finding in findings}


def message(now: HealthInput) -> str:
    (finding,) = [finding for rule in LAKE_RULES for finding in rule(now)]
    return finding.message


def test_a_pipeline_that_is_well_has_no_alarm() -> None:
    assert found(standing()) == {}
    assert found(HealthInput(pipeline=SHOP, at=NOW)) == {}, "nor has one that the ledger does not know"


@pytest.mark.parametrize(
    ("old", "keys", "expected"),
    [
        (29, {}, {}),
        (30, {}, {"lake-stale": "warn"}),
        (120, {}, {"lake-stale": "critical"}),
        (10, {"health": {"freshness": {"warn": "5m"}}}, {"lake-stale": "warn"}),
        (20, {"health": {"freshness": {"warn": "5m"}}}, {"lake-stale": "critical"}),
        (170, {"capture": {"schedule": "0 * * * *"}}, {}),
        (180, {"capture": {"schedule": "0 * * * *"}}, {"lake-stale": "warn"}),
    ],
)
def test_the_lake_may_be_as_old_as_its_limit_or_as_the_schedule_makes_it(old: int, keys: Any, expected: Any) -> None:
    assert found(standing(keys, {"as_of": ago(minutes=old)})) == expected


def test_a_lake_without_a_window_is_as_old_as_its_cut() -> None:
    assert found(standing(lake={"as_of": None, "cut_at": ago(hours=1)})) == {"lake-stale": "warn"}
    assert found(standing(lake={"as_of": None, "cut_at": None})) == {}


def test_freshness_is_said_in_human_words() -> None:
    now = standing(lake={"as_of": ago(hours=3, minutes=12), "unmerged_changes": 81_000})

    assert message(now) == "readers see the source as it was 3 h 12 min ago, the critical limit is 2 h"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"airflow": {"merge": DagState(paused=True)}}, "merge-paused"),
        ({"outcomes": [failed("merge", "spark", 720, "spark-failed")]}, "merge-failing"),
        ({}, "merge-late"),
        ({"airflow": {"merge": DagState(paused=False, under_way=True)}}, None),
        ({"airflow": {"merge": DagState(missing=True)}}, "merge-late"),
    ],
)
def test_changes_that_wait_for_a_merge_say_why_it_does_not_come(changes: Any, expected: str | None) -> None:
    assert list(found(standing(lake=WAITING, **changes))) == ([expected] if expected else [])
    assert found(standing(**changes)) == {}, "nothing waits"


def test_a_failing_merge_says_for_how_long_where_and_with_which_error() -> None:
    now = standing(lake=WAITING, outcomes=[failed("merge", "spark", 720, "spark-failed")])

    assert message(now).startswith(
        "shop.merge has failed for 12 min at its task spark with spark-failed, and 1,200 changes"
    )


def test_a_merge_that_was_just_asked_for_is_not_late() -> None:
    assert found(standing(lake={**WAITING, "unmerged_since": ago(minutes=14)})) == {}


def still(name: str, slug: str | None = None, reason: str | None = None, remedy: Any = None, **known: Any) -> Any:
    """Return a table that is paused, or with no slug waits for its copy."""
    facts = {"state": "paused" if slug else "new", "paused_slug": slug, "paused_reason": reason, "remedy": remedy}
    return table_record(1, name, **facts, **known)


STILL = [
    still("t", "schema-change", "a column was retyped", "copy"),
    still("u", "merge-conflict", "rows were absent", "resume"),
    still("v", joined_lsn=OWN.confirmed),
    still("w", "no-usable-identity", "it has no key", "person"),
]


def test_every_paused_table_is_an_alarm_that_names_its_way_out() -> None:
    findings = [finding for rule in LAKE_RULES for finding in rule(standing(still=STILL))]

    assert [(each.slug, each.subject) for each in findings] == [
        ("table-paused", "public.t"),
        ("table-paused", "public.u"),
        ("table-paused", "public.w"),
    ]
    assert findings[0].next.endswith("shop.resync copies it again by itself")
    assert findings[1].next.endswith("trigger shop.resume")
    assert findings[2].next.endswith("trigger shop.resync")
    waits = standing({"tables": {"include": ["*.*"], "on_change": "pause"}}, still=STILL[:1])
    (asked,) = [finding for rule in LAKE_RULES for finding in rule(waits)]
    assert asked.next.endswith("trigger shop.resync, which copies it again")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"outcomes": [failed("resync", "build", 60, "spark-failed")]}, {"resync-failing"}),
        ({"airflow": {"resync": DagState(paused=True)}}, {"resync-failing"}),
        ({"airflow": {"resync": DagState(paused=False)}}, set()),
    ],
)
def test_a_resync_that_fails_or_is_paused_matters_while_a_table_waits(changes: Any, expected: set[str]) -> None:
    assert set(found(standing(still=STILL[2:3], **changes))) == expected
    assert set(found(standing(copies=[OpenCopy("resync", "r1", 1, NOW)], **changes))) == expected
    assert found(standing(**changes)) == {}


def test_a_copy_that_does_not_get_on_is_told_with_the_dag_that_goes_on() -> None:
    assert found(standing(copies=[OpenCopy("copy", "c1", 3, ago(hours=5))])) == {}

    assert message(standing(copies=[OpenCopy("copy", "c1", 3, ago(hours=7))])) == (
        "the copy c1 has not got on for 7 h: 3 tables still to be copied"
    )


@pytest.mark.parametrize(
    ("verb", "late", "keys"),
    [
        ("maintain", {"maintained_at": ago(days=3)}, {}),
        ("changelog", {"filled_upto": ago(days=3)}, {}),
        ("verify", {"verified_at": ago(days=3)}, {"verify": {"schedule": "0 3 * * *"}}),
    ],
)
def test_scheduled_work_is_overdue_after_two_schedules_or_when_it_fails(verb: str, late: Any, keys: Any) -> None:
    well = {"maintained_at": ago(hours=1), "filled_upto": ago(hours=1), "verified_at": ago(hours=1), "sampled_at": NOW}
    states = {verb: DagState(paused=True)}

    assert found(standing(keys, late=LateWork(**{**well, **late}))) == {f"{verb}-overdue": "warn"}
    assert "is paused; it was last done 3 d ago" in message(
        standing(keys, late=LateWork(**{**well, **late}), airflow=states)
    )
    assert found(standing(keys, late=LateWork(**well), airflow=states)) == {}, "a pause that has not mattered yet"
    fails = standing(keys, late=LateWork(**well), outcomes=[failed(verb, verb, 60, "spark-failed")])
    assert found(fails) == {f"{verb}-overdue": "warn"}
    off = {verb: {"schedule": None}}
    assert found(standing(off, late=LateWork(**{**well, **late}))) == {}


def test_what_a_verification_found_is_no_failure_of_it() -> None:
    keys = {"verify": {"schedule": "0 3 * * *"}}

    assert found(standing(keys, outcomes=[failed("verify", "equal", 60, "verify-differs")])) == {}


def test_changelogs_that_nobody_unpaused_are_not_missed() -> None:
    never = LateWork(maintained_at=NOW, sampled_at=NOW)
    old = {"created_at": ago(days=9)}

    for state in (DagState(), DagState(paused=True)):
        assert found(standing(lake=old, late=never, airflow={"changelog": state})) == {}
    unpaused = standing(lake=old, late=never, airflow={"changelog": DagState(paused=False)})
    assert found(unpaused) == {"changelog-overdue": "warn"}


@pytest.mark.parametrize(("free", "expected"), [(11, None), (9, "warn"), (2, "critical"), (None, None)])
def test_little_room_is_told_where_it_can_be_known(free: int | None, expected: str | None) -> None:
    disk = Disk("lake", "/lake", None if free is None else free * GIB, None if free is None else 100 * GIB)

    assert found(standing(disks=[disk])) == ({"storage-nearly-full": expected} if expected else {})


def test_one_disk_for_both_is_named_once_and_an_object_store_is_unknown(tmp_path: Any) -> None:
    (both,) = disks(f"file://{tmp_path}/", str(tmp_path))
    far, gone = disks("s3a://bucket/landing/", str(tmp_path / "gone"))

    assert (both.what, both.total is not None) == ("landing zone and lake", True)
    assert (far.free, gone.free) == (None, None)


@pytest.mark.parametrize(
    ("health", "expected"),
    [
        ({}, []),
        ({"warn": {"channels": ["mail"]}}, ["critical"]),
        ({"critical": {"channels": ["mail"]}}, []),
        ({"warn": {"channels": ["mail"]}, "critical": {"channels": ["mail"]}}, []),
    ],
)
def test_critical_alarms_that_nobody_hears_are_told_to_those_who_hear_warnings(
    health: Any, expected: list[str]
) -> None:
    assert [finding.subject for rule in LAKE_RULES for finding in rule(standing({"health": health}))] == expected


def test_a_watcher_that_is_paused_or_silent_is_told() -> None:
    assert found(standing(airflow={"slot_health": DagState(paused=True)})) == {"slot-unwatched": "critical"}
    silent = LateWork(maintained_at=NOW, filled_upto=NOW, sampled_at=ago(minutes=26))
    assert found(standing(late=silent)) == {"slot-unwatched": "critical"}
    assert found(standing(late=replace(silent, sampled_at=ago(minutes=24)))) == {}
    assert found(standing({"health": {"schedule": None}}, late=silent)) == {}


def test_an_alarm_of_freshness_closes_only_well_below_its_limit() -> None:
    held = [alarm("lake-stale", "warn", "shop")]

    assert found(standing(lake={"as_of": ago(minutes=28)}, alarms=held)) == {"lake-stale": "warn"}
    assert found(standing(lake={"as_of": ago(minutes=26)}, alarms=held)) == {}


def test_freshness_and_what_waits_are_gauges() -> None:
    judged = verdict(OWN, lake=replace(LAKE, unmerged_changes=7, unmerged_bytes=900, tables_paused=1))

    gauges = report.gauges(judged)
    assert {name: value for name, value in gauges.items() if not name.startswith("penstock.slot.")} == {
        "penstock.lake.freshness_seconds": 60,
        "penstock.lake.unmerged_changes": 7,
        "penstock.lake.unmerged_bytes": 900,
        "penstock.tables.all": 2,
        "penstock.tables.ready": 2,
        "penstock.tables.paused": 1,
        "penstock.tables.conflicting": 0,
        "penstock.tables.differing": 0,
    }


def test_the_report_says_how_full_a_disk_is_and_of_which_place_that_is_unknown() -> None:
    near, far = Disk("lake", "/lake", 5 * GIB, 100 * GIB), Disk("landing zone", "s3a://bucket/landing/")
    said = report.lines(verdict(OWN, lake=LAKE, disks=[near, far]))

    assert ("disk of the lake", "5.0 GiB free of 100.0 GiB") in said
    assert ("cannot see", "how full the landing zone is, at s3a://bucket/landing/") in said
