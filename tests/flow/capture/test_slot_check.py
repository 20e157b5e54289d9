"""The verdict over ledger and source: continue, heal the slot, or halt with the right name."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from penstock.errors import PenstockError
from penstock.flow.capture.slot_check import (
    HistoryError,
    SourceState,
    is_behind,
    judge_again,
    provable,
    same_window,
    to_prove,
)
from penstock.ledger.records import WindowRecord, WindowState
from penstock.lsn import Lsn
from tests.flow.health.cases import OWN, RECORD, SERVER

KNOWN = replace(RECORD, publication_oid=16400, consistent_point=Lsn(1000), position=Lsn(5000)).with_slot()
FOUND = SourceState(SERVER, replace(OWN, restart=Lsn(3000), confirmed=Lsn(5000)), 16400, Lsn(9000))
GONE = replace(FOUND, slot=None)


def slot(found: SourceState = FOUND, **facts: object) -> SourceState:
    """Return what was found with other facts of the slot."""
    return replace(found, slot=replace(found.slot or OWN, **facts))  # type: ignore[arg-type]


def server(found: SourceState = FOUND, **facts: object) -> SourceState:
    """Return what was found with other facts of the server."""
    return replace(found, server=replace(found.server, **facts))  # type: ignore[arg-type]


def test_a_slot_at_the_ledgers_position_needs_nothing() -> None:
    assert not is_behind(KNOWN, FOUND)


def test_a_slot_behind_the_ledger_is_advanced_to_it() -> None:
    assert is_behind(KNOWN, slot(confirmed=Lsn(4000)))


@pytest.mark.parametrize(
    ("found", "slug"),
    [
        (server(system_identifier=8), "source-changed"),
        (server(timeline=2), "source-changed"),
        (server(database="other"), "source-changed"),
        (replace(slot(confirmed=Lsn(4000)), flushed=Lsn(4999)), "source-changed"),
        (replace(FOUND, publication_oid=None), "publication-missing"),
        (replace(FOUND, publication_oid=16500), "publication-missing"),
        (GONE, "slot-missing"),
        (slot(wal_status="lost"), "slot-lost"),
        (slot(invalidation="idle_timeout"), "slot-lost"),
        (slot(confirmed=None), "slot-lost"),
        (slot(plugin="test_decoding"), "slot-unusable"),
        (slot(two_phase=True), "slot-unusable"),
        (slot(temporary=True), "slot-unusable"),
        (slot(database="other"), "slot-unusable"),
        (slot(confirmed=Lsn(5001)), "slot-ahead"),
    ],
)
def test_what_may_have_lost_changes_halts_with_its_own_name(found: SourceState, slug: str) -> None:
    with pytest.raises(PenstockError) as caught:
        is_behind(KNOWN, found)

    assert caught.value.slug == slug
    assert caught.value.directive.value == "halt"


def test_another_server_is_noticed_before_its_slot_is_looked_at() -> None:
    with pytest.raises(PenstockError) as caught:
        is_behind(KNOWN, server(GONE, system_identifier=8))

    assert caught.value.slug == "source-changed"


def test_a_slot_that_stands_after_the_peek_where_it_stood_before_has_given_the_whole_window() -> None:
    assert judge_again(KNOWN, FOUND, FOUND) is None


def test_a_peek_may_move_the_restart_point_by_itself() -> None:
    assert judge_again(KNOWN, FOUND, replace(slot(restart=Lsn(4000)), flushed=Lsn(20000))) is None


@pytest.mark.parametrize(
    ("found", "slug"),
    [
        (slot(confirmed=Lsn(5001)), "slot-ahead"),
        (GONE, "slot-missing"),
        (slot(wal_status="lost", restart=None), "slot-lost"),
        (slot(two_phase=True), "slot-unusable"),
        (server(system_identifier=8), "source-changed"),
        (server(timeline=2), "source-changed"),
        (replace(FOUND, publication_oid=16500), "publication-missing"),
        (replace(FOUND, publication_oid=None), "publication-missing"),
    ],
)
def test_whatever_changed_under_the_peek_halts_as_it_would_before(found: SourceState, slug: str) -> None:
    with pytest.raises(PenstockError) as caught:
        judge_again(KNOWN, FOUND, found)

    assert caught.value.slug == slug
    assert caught.value.directive.value == "halt"


@pytest.mark.parametrize("found", [slot(confirmed=Lsn(4999)), slot(restart=Lsn(2999))])
def test_a_slot_set_back_under_the_peek_is_another_one_and_the_window_is_read_again(found: SourceState) -> None:
    with pytest.raises(PenstockError, match="slot-in-use") as caught:
        judge_again(KNOWN, FOUND, found)

    assert caught.value.directive.value == "retry"


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def window(start: int, end: int, *, state: WindowState = "confirmed", digest: str | None = "any:0f") -> WindowRecord:
    moments = {"planned_at": NOON, "staged_at": NOON, "source_time": None}
    facts = {"rows": 0, "bytes": 0, "transactions": 0, "messages": 0, "files": (), "seconds": None}
    return WindowRecord(
        pipeline="shop",
        from_lsn=Lsn(start),
        upto_lsn=Lsn(end),
        attempt="a",
        state=state,
        digest=digest,
        era=1,
        **moments,  # type: ignore[arg-type]
        **facts,  # type: ignore[arg-type]
    )


def test_all_windows_between_slot_and_ledger_are_to_be_proved_and_no_planned_one() -> None:
    staged = [window(4000, 4500), window(4500, 5000, state="staged")]

    assert to_prove(KNOWN, Lsn(4000), [*staged, window(5000, 6000, state="planned")]) == staged


def test_a_slot_before_the_first_window_of_an_era_that_has_none_needs_no_proof() -> None:
    assert to_prove(KNOWN, KNOWN.position, []) == []


@pytest.mark.parametrize(
    "windows",
    [
        pytest.param([], id="all forgotten"),
        pytest.param([window(4500, 5000)], id="the first forgotten"),
        pytest.param([window(3500, 4500), window(4500, 5000)], id="in the middle of a window"),
        pytest.param([window(4000, 4500)], id="the last one missing"),
        pytest.param([window(4000, 5000, digest=None)], id="staged without a digest"),
    ],
)
def test_what_cannot_be_read_again_window_by_window_is_not_proved(windows: list[WindowRecord]) -> None:
    with pytest.raises(PenstockError, match="source-changed"):
        to_prove(KNOWN, Lsn(4000), windows)


def test_a_window_that_reads_otherwise_now_is_of_another_history() -> None:
    same_window(window(4000, 5000), "any:0f")
    with pytest.raises(PenstockError, match=r"source-changed.*0/FA0 to 0/1388"):
        same_window(window(4000, 5000), "any:0e")


@pytest.mark.parametrize(("confirmed", "is_provable"), [(3000, True), (4000, True), (4001, False), (5000, False)])
def test_unproved_wal_can_be_proved_only_from_where_it_begins(confirmed: int, is_provable: bool) -> None:
    known = replace(KNOWN, unproved_from=Lsn(4000))
    if is_provable:
        provable(known, slot(confirmed=Lsn(confirmed)))
    else:
        with pytest.raises(HistoryError, match="another history was found"):
            provable(known, slot(confirmed=Lsn(confirmed)))


def test_wal_that_was_lost_leaves_nothing_to_read_again() -> None:
    with pytest.raises(HistoryError, match="source-changed"):
        provable(replace(KNOWN, unproved_from=Lsn(5000)), FOUND)


def test_a_standby_that_replays_again_is_no_other_history() -> None:
    behind = replace(slot(confirmed=Lsn(4000)), flushed=Lsn(4999))
    with pytest.raises(HistoryError):
        is_behind(KNOWN, behind)
    with pytest.raises(PenstockError, match="source-changed") as caught:
        is_behind(KNOWN, server(behind, in_recovery=True))
    assert not isinstance(caught.value, HistoryError)
