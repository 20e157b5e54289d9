"""The verdict over ledger and source: go on, heal the slot, or halt with the right name."""

from dataclasses import replace

import pytest

from penstock.errors import PenstockError
from penstock.flow.judge import Found, Known, judge, judge_again
from penstock.lsn import Lsn

KNOWN = Known(
    system_identifier=7,
    timeline=1,
    database="shop",
    slot="penstock_shop",
    publication="penstock_shop",
    publication_oid=16400,
    consistent_point=Lsn(1000),
    position=Lsn(5000),
)
FOUND = Found(
    system_identifier=7,
    timeline=1,
    database="shop",
    publication_oid=16400,
    slot_exists=True,
    plugin="pgoutput",
    slot_database="shop",
    two_phase=False,
    temporary=False,
    wal_status="reserved",
    invalidation=None,
    restart=Lsn(3000),
    confirmed=Lsn(5000),
    flushed=Lsn(9000),
)


def test_a_slot_at_the_ledgers_position_needs_nothing() -> None:
    assert judge(KNOWN, FOUND) is None


def test_a_slot_behind_the_ledger_is_advanced_to_it() -> None:
    assert judge(KNOWN, replace(FOUND, confirmed=Lsn(4000))) == Lsn(5000)


@pytest.mark.parametrize(
    ("change", "slug"),
    [
        ({"system_identifier": 8}, "source-changed"),
        ({"timeline": 2}, "source-changed"),
        ({"database": "other"}, "source-changed"),
        ({"flushed": Lsn(4999), "confirmed": Lsn(4000)}, "source-changed"),
        ({"publication_oid": None}, "publication-missing"),
        ({"publication_oid": 16500}, "publication-missing"),
        ({"slot_exists": False, "confirmed": None}, "slot-missing"),
        ({"wal_status": "lost"}, "slot-lost"),
        ({"invalidation": "idle_timeout"}, "slot-lost"),
        ({"confirmed": None}, "slot-lost"),
        ({"plugin": "test_decoding"}, "slot-unusable"),
        ({"two_phase": True}, "slot-unusable"),
        ({"temporary": True}, "slot-unusable"),
        ({"slot_database": "other"}, "slot-unusable"),
        ({"confirmed": Lsn(5001)}, "slot-ahead"),
    ],
)
def test_what_may_have_lost_changes_halts_with_its_own_name(change: dict[str, object], slug: str) -> None:
    with pytest.raises(PenstockError) as caught:
        judge(KNOWN, replace(FOUND, **change))  # type: ignore[arg-type]

    assert caught.value.slug == slug
    assert caught.value.directive.value == "halt"


def test_another_server_is_noticed_before_its_slot_is_looked_at() -> None:
    with pytest.raises(PenstockError) as caught:
        judge(KNOWN, replace(FOUND, system_identifier=8, slot_exists=False, confirmed=None))

    assert caught.value.slug == "source-changed"


def test_a_slot_that_stands_after_the_peek_where_it_stood_before_has_given_the_whole_window() -> None:
    judge_again(KNOWN, FOUND, FOUND)


def test_a_peek_may_move_the_restart_point_by_itself() -> None:
    judge_again(KNOWN, FOUND, replace(FOUND, restart=Lsn(4000), flushed=Lsn(20000)))


@pytest.mark.parametrize(
    ("change", "slug"),
    [
        ({"confirmed": Lsn(5001)}, "slot-ahead"),
        ({"slot_exists": False, "confirmed": None, "restart": None}, "slot-missing"),
        ({"wal_status": "lost", "restart": None}, "slot-lost"),
        ({"two_phase": True}, "slot-unusable"),
        ({"system_identifier": 8}, "source-changed"),
        ({"timeline": 2}, "source-changed"),
        ({"publication_oid": 16500}, "publication-missing"),
        ({"publication_oid": None}, "publication-missing"),
    ],
)
def test_whatever_changed_under_the_peek_halts_as_it_would_before(change: dict[str, object], slug: str) -> None:
    with pytest.raises(PenstockError) as caught:
        judge_again(KNOWN, FOUND, replace(FOUND, **change))  # type: ignore[arg-type]

    assert caught.value.slug == slug
    assert caught.value.directive.value == "halt"


@pytest.mark.parametrize("change", [{"confirmed": Lsn(4999)}, {"restart": Lsn(2999)}])
def test_a_slot_set_back_under_the_peek_is_another_one_and_the_window_is_read_again(change: dict[str, object]) -> None:
    with pytest.raises(PenstockError, match="slot-in-use") as caught:
        judge_again(KNOWN, FOUND, replace(FOUND, **change))  # type: ignore[arg-type]

    assert caught.value.directive.value == "retry"
