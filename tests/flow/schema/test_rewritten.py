"""A table of which the next windows have to answer something: when they are asked, what is held back meanwhile, and what follows."""

from dataclasses import replace

import pytest

from penstock.flow.schema.questions import OpenTable, ask_for_files, ask_for_values, held_files
from penstock.ledger.table_records import TableRecord
from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted, HeldBack, OpenQuestion
from penstock.shapes.ddl_log import Before
from penstock.shapes.source_table import SourceColumn, SourceTable
from penstock.shapes.steps import Policy
from penstock.values.pgtype import PgType
from tests.shapes.tables import BIGINT, HEAP, ID, INT, known_as, source_table

N = SourceColumn("n", 2, INT, version="700")
LEAF = replace(HEAP, oid=101, name="t_1")
BEFORE = source_table(kind="p", columns=(ID, N), leaves=(LEAF,), file=0)
NOW = replace(BEFORE, columns=(ID, replace(N, type=BIGINT, version="705")), leaves=(replace(LEAF, file=201),))
COMPUTED = replace(N, generated="s")


def opened(before: SourceTable, now: SourceTable) -> bool:
    policy = Policy(on_dropped_partition="follow")
    return ask_for_values(known_as(before), now, policy, frozenset(), here=Lsn(9)) is not None


def test_a_partitioned_table_with_a_wider_column_waits_for_what_is_told() -> None:
    assert opened(BEFORE, NOW)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        pytest.param(replace(BEFORE, leaves=(replace(LEAF, persistence="u"),)), NOW, id="was unlogged"),
        pytest.param(BEFORE, replace(NOW, leaves=(replace(NOW.leaves[0], persistence="u"),)), id="is unlogged"),
        pytest.param(BEFORE, replace(NOW, leaves=(*NOW.leaves, replace(LEAF, oid=102, kind="f"))), id="is foreign"),
        pytest.param(replace(BEFORE, leaves=(LEAF, replace(LEAF, oid=102))), NOW, id="is gone"),
        pytest.param(
            replace(BEFORE, columns=(ID, N, replace(COMPUTED, attnum=3))),
            replace(NOW, columns=(*NOW.columns, replace(COMPUTED, attnum=3))),
            id="has a column that each partition computes by itself",
        ),
    ],
)
def test_what_partitions_may_hide_is_not_left_to_what_is_told(before: SourceTable, now: SourceTable) -> None:
    assert not opened(before, now)


# --- one file that is to be explained, beside a column that was added ------------------------

TWO = replace(LEAF, oid=102, name="t_2", file=300)
PARTED = replace(BEFORE, leaves=(LEAF, TWO))
ADDED = replace(PARTED, columns=(*PARTED.columns, SourceColumn("more", 3, INT, version="705", missing_text="1")))
EMPTIED = replace(ADDED, leaves=(replace(LEAF, file=201), TWO))
BOTH = replace(ADDED, leaves=(replace(LEAF, file=201), replace(TWO, file=301)))
KEEPS = Policy(on_dropped_partition="keep")


def asked(now: SourceTable, *files: int, known: TableRecord | None = None) -> OpenTable | None:
    return ask_for_files(known or known_as(PARTED), now, KEEPS, frozenset(), files=files, here=Lsn(9))


def of_files(now: SourceTable, *files: int, known: TableRecord | None = None) -> OpenTable:
    found = asked(now, *files, known=known)
    assert found is not None
    return found


def test_files_are_asked_for_up_to_the_first_position_that_was_named() -> None:
    earlier = known_as(PARTED, accepted=Accepted(PARTED.shape, (OpenQuestion("file", 101, Lsn(5)),)))

    assert (of_files(BOTH, 101, 102).through, of_files(BOTH, 101, 102).files) == (Lsn(9), {101, 102})
    assert of_files(BOTH, 101, 102, known=earlier).through == Lsn(5)
    assert of_files(EMPTIED, 101).is_reshaped
    assert not of_files(replace(EMPTIED, columns=PARTED.columns), 101).is_reshaped
    assert held_files(earlier.accepted) == {101}


def test_files_are_not_asked_for_where_a_copy_is_needed_anyway() -> None:
    attached = replace(LEAF, oid=103, name="t_3", file=103, chain=("3",), persistence="u")

    assert asked(ADDED) is None
    assert asked(replace(EMPTIED, filter="other"), 101) is None
    assert not of_files(EMPTIED, 101).is_refused
    assert asked(replace(EMPTIED, leaves=(*EMPTIED.leaves, attached)), 101) is None


def test_what_is_followed_at_once_holds_back_the_files_that_nothing_explains_yet() -> None:
    case = of_files(BOTH, 101, 102)
    accepted, partly = case.accepted(checked=True), case.accepted(without={102})

    assert [event.name for event in case.best().events] == ["add-column"]
    assert {oid: leaf.file for oid, leaf in accepted.shape.leaves.items()} == {101: 200, 102: 300}
    assert {oid: leaf.file for oid, leaf in partly.shape.leaves.items()} == {101: 200, 102: 301}
    assert accepted.shape.versions[3] == "", "so that each look until then finds it altered"
    assert [(each.subject, each.checked) for each in accepted.questions] == [(101, True), (102, True)]
    assert [(each.subject, each.checked) for each in partly.questions] == [(101, False)]
    assert {oid: leaf.file for oid, leaf in case.with_explained({102}).shape.leaves.items()} == {101: 200, 102: 301}
    assert case.rewrites(None, None) == {101: None, 102: None}
    assert of_files(EMPTIED, 101).rewrites(None, None) == {101: None}


def test_a_partition_that_is_gone_stays_known_until_the_files_of_others_are_explained() -> None:
    case = of_files(replace(EMPTIED, leaves=EMPTIED.leaves[:1]), 101)

    assert case.accepted().shape.leaves.keys() == {101, 102}
    assert (case.best().gone, [each.name for each in case.best().events]) == ((), ["add-column"])


# --- columns that may hold the values of before ----------------------------------------------

DOMAIN = PgType(70000, -1, "public", "price", "d", base=INT)
PLAIN = source_table(columns=(ID, N, SourceColumn("d", 3, DOMAIN, version="700")))
WIDER = replace(
    PLAIN,
    columns=(ID, replace(N, type=BIGINT, version="705"), PLAIN.columns[2], SourceColumn("more", 4, INT, version="706")),
    leaves=(replace(PLAIN.leaves[0], file=201),),
)
TEXT = "column n changed its type from integer to bigint"


def of_values(now: SourceTable, *open_: OpenQuestion, before: SourceTable = PLAIN) -> OpenTable | None:
    known = known_as(before, accepted=Accepted(before.shape, open_))
    return ask_for_values(known, now, KEEPS, frozenset({100}), here=Lsn(9))


def test_a_wider_column_is_held_back_with_what_is_said_of_it_and_all_else_is_followed() -> None:
    case = of_values(replace(WIDER, columns=(*WIDER.columns[:3], replace(WIDER.columns[3], missing_text="1"))))
    assert case is not None
    (question,) = case.questions

    assert question == OpenQuestion("values", 2, Lsn(9), held_back=HeldBack((23, -1), "705", ((TEXT, 705),)))
    assert (case.columns, case.files, case.versions()) == ({2}, frozenset(), {2: "705"})
    assert [event.name for event in case.meanwhile().events] == ["add-column"]
    assert [event.name for event in case.rest(case.best()).events] == ["retype-column"]
    accepted = case.accepted(checked=True)
    assert (accepted.shape.versions[2], accepted.shape.leaves[100].file) == ("700", 200)
    assert [each.checked for each in accepted.questions] == [True]
    assert held_files(accepted) == {100}
    assert case.before() == Before(
        200, {1: (23, -1), 2: (23, -1), 3: (70000, -1)}, dict.fromkeys((1, 2, 3), "700"), {70000: 23}
    )


@pytest.mark.parametrize(("version", "through"), [("705", Lsn(5)), ("704", Lsn(9))], ids=["the same", "another"])
def test_a_column_that_is_altered_once_more_is_asked_for_anew(version: str, through: Lsn) -> None:
    now = replace(WIDER, columns=WIDER.columns[:3])
    case = of_values(
        now, OpenQuestion("values", 2, Lsn(5), True, HeldBack((21, -1), version, (("from smallint", 704),)))
    )
    assert case is not None
    assert case.questions[0].held_back is not None

    assert (case.through, case.questions[0].checked) == (through, True)
    assert case.questions[0].held_back.events == (("from smallint", 704), (TEXT, 705))
    assert case.before().types[2] == (21, -1)
    assert case.before().checked
    assert [event.text for event in case.rest(case.best()).events] == ["from smallint", TEXT]


def test_each_command_on_a_partitioned_table_counts_as_one_that_rewrote_it() -> None:
    case = of_values(NOW, before=BEFORE)

    assert case is not None
    assert case.before().file == -1
    assert of_values(replace(WIDER, columns=(ID, N, *WIDER.columns[2:]))) is None, "nothing was altered"
    assert of_values(replace(WIDER, persistence="u")) is None
    assert of_values(replace(WIDER, filter="other")) is None
