"""Which slots may be dropped: the own one for three reasons, others only by name. Pure."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.lsn import Lsn
from penstock.source.slot import SlotFacts
from tests.flow.health.cases import GIB, MIB, NOW, OTHER, OWN, RECORD, behind, levels, policy, remembered, verdict

LARGE = behind(retained=6 * GIB)
LOST = replace(OWN, wal_status="lost", invalidation="wal_removed")
IDLE = behind(OTHER, retained=2 * GIB, inactive_since=NOW - timedelta(days=3))
RULE = {"name": "report*", "inactive": "1d", "retained": "1GiB"}


def dropped(*slots: SlotFacts, rules: Any = None, **changes: Any) -> list[str]:
    return [each.slot.name for each in verdict(*slots, rules=policy(drop=rules or {}), **changes).drops]


def named(*slots: SlotFacts, rule: Any = None, **changes: Any) -> list[str]:
    return dropped(OWN, *slots, rules={"foreign": [RULE | (rule or {})]}, **changes)


def test_the_own_slot_goes_when_it_has_been_beyond_its_limit_for_long_enough() -> None:
    assert dropped(LARGE, history=[remembered(LARGE, 900)]) == [OWN.name]
    assert dropped(LARGE, history=[remembered(LARGE, 899)]) == []
    assert dropped(LARGE) == []


def test_being_beyond_the_limit_begins_again_after_it_was_not() -> None:
    history = [remembered(LARGE, 100), remembered(OWN, 500), remembered(LARGE, 2000)]

    assert dropped(LARGE, history=history) == []


def test_the_own_slot_goes_before_the_server_would_take_it() -> None:
    slot = behind(retained=81 * MIB)
    rules = policy(critical={"share": 1.0}, drop={"patience": 1})
    found = verdict(slot, rules=rules, max_slot_wal_keep_size=100 * MIB, history=[remembered(slot, 60)])

    assert [each.statement for each in found.drops] == ["select pg_drop_replication_slot('penstock_shop')"]
    assert found.drops[0].numbers["drop"] == 80 * MIB


def test_a_lost_slot_goes_at_once() -> None:
    assert dropped(LOST) == [OWN.name]


def test_an_orphan_goes_at_once() -> None:
    assert dropped(OWN, tables=0) == [OWN.name]


def test_a_pipeline_whose_first_table_is_yet_to_come_keeps_its_slot() -> None:
    found = verdict(OWN, tables=0, known_tables=0)

    assert (found.drops, levels(found)) == ((), {})


MADE_ANEW = replace(OWN, restart=Lsn(OWN.confirmed + 100), confirmed=Lsn(OWN.confirmed + 200))


@pytest.mark.parametrize(
    "slot", [MADE_ANEW, replace(MADE_ANEW, restart=OWN.confirmed), replace(MADE_ANEW, restart=None)]
)
def test_a_slot_that_begins_beyond_what_was_read_is_anothers(slot: SlotFacts) -> None:
    assert dropped(replace(slot, wal_status="lost", invalidation="wal_removed")) == []
    assert dropped(slot, tables=0) == []


def test_a_slot_that_was_moved_by_hand_and_keeps_wal_of_before_is_still_ours() -> None:
    assert dropped(replace(OWN, confirmed=Lsn(OWN.confirmed + 200)), tables=0) == [OWN.name]


def test_a_pipeline_that_is_torn_down_owns_no_slot_and_opens_no_alarm_about_one_of_its_name() -> None:
    torn_down = replace(RECORD, state="torn_down")
    found = verdict(replace(LARGE, invalidation="wal_removed", wal_status="lost"), tables=0, record=torn_down)

    assert (found.drops, levels(found)) == ((), {})
    assert not found.facts.samples[OWN.name].own


@pytest.mark.parametrize(
    "slot",
    [
        replace(LOST, active=True),
        replace(LOST, temporary=True),
        replace(LOST, synced=True),
        replace(LOST, database="another"),
        replace(LOST, slot_type="physical", database=None),
    ],
)
def test_what_the_own_name_does_not_make_ours_stays(slot: SlotFacts) -> None:
    assert dropped(slot) == []


@pytest.mark.parametrize(
    "record",
    [
        None,
        replace(RECORD, slot_intent_at=None),
        replace(RECORD, slot_made=False),
        replace(RECORD, system_identifier=8),
        replace(RECORD, slot="x"),
    ],
)
def test_a_slot_that_the_ledger_does_not_know_as_ours_stays(record: Any) -> None:
    assert dropped(LOST, record=record) == []


def test_the_own_slot_stays_if_the_policy_says_so() -> None:
    assert dropped(LOST, rules={"own": False}) == []


def test_a_foreign_slot_goes_only_by_a_rule() -> None:
    assert dropped(OWN, IDLE) == []
    assert named(IDLE) == ["reporting"]


@pytest.mark.parametrize(
    "rule",
    [
        {"name": "other*"},
        {"name": "REPORT*"},
        {"inactive": "3d"},
        {"retained": "2GiB"},
        {"type": "physical"},
        {"database": "crm"},
    ],
)
def test_a_rule_that_does_not_fit_drops_nothing(rule: Any) -> None:
    assert named(IDLE, rule=rule) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"active": True},
        {"temporary": True},
        {"synced": True},
        {"database": "crm"},
        {"slot_type": "physical", "database": None},
        {"inactive_since": NOW},
    ],
)
def test_a_slot_that_the_rule_does_not_name_stays(changes: Any) -> None:
    assert named(replace(IDLE, **changes)) == []


def test_a_slot_of_another_database_or_a_physical_one_goes_only_when_named_as_such() -> None:
    assert named(replace(IDLE, database="crm"), rule={"database": "crm"}) == ["reporting"]
    assert named(replace(IDLE, slot_type="physical", database=None), rule={"type": "physical"}) == ["reporting"]


def test_another_pipelines_slot_stays_whatever_the_rule_says() -> None:
    assert named(IDLE, rule={"name": "*"}, others=frozenset({"reporting"})) == []


def test_the_own_slot_is_no_foreign_slot() -> None:
    slot = behind(retained=2 * GIB, inactive_since=NOW - timedelta(days=3))

    assert dropped(slot, rules={"foreign": [RULE | {"name": "*"}]}) == []


@pytest.mark.parametrize(("dry_run", "words"), [(True, "dry run"), (False, "Penstock now runs")])
def test_the_alarm_shows_the_exact_statement(dry_run: bool, words: str) -> None:
    (finding,) = verdict(LOST, rules=policy(dry_run=dry_run)).findings

    assert words in finding.next
    assert finding.next.endswith("select pg_drop_replication_slot('penstock_shop')")
    assert finding.numbers["dry_run"] is dry_run
