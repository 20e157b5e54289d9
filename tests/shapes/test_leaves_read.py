"""Which partitions are read, and which rows stay, where only rows of partitions are in doubt."""

from dataclasses import replace
from typing import Any

import pytest

from penstock.errors import SourceError
from penstock.lsn import Lsn
from penstock.shapes import row_identity
from penstock.shapes.accepted import Accepted, GonePartition
from penstock.shapes.partition_bounds import Condition
from penstock.shapes.plan import Plan, plan
from penstock.shapes.reads import LeafRead
from penstock.shapes.source_table import Leaf, SourceColumn, SourceTable
from penstock.shapes.steps import Policy
from tests.shapes.tables import HEAP, ID, TEXT, known_as, source_table
from tests.shapes.test_rules import GIVEN, TABLE

NAMES = {1: "id", 2: "name", 3: "given"}


def leaf(number: int, low: int | None, high: int | None, *, attached: bool = False) -> Leaf:
    version = f"{number} 100 7{number}"
    bound = Condition(1, "int", None if low is None else str(low), None if high is None else str(high))
    since = (version,) if attached else ()
    return replace(HEAP, oid=number, name=f"p{number}", file=number, chain=(version,), attached=since, bound=(bound,))


ONE, TWO, THREE = leaf(1, 0, 10), leaf(2, 10, 20), leaf(3, 30, 40)
NEW = leaf(9, 50, 60, attached=True)
PARTED = replace(
    TABLE,
    kind="p",
    leaves=(ONE, TWO, THREE),
    hidden={},
    enums={},
    part_versions={},
    columns=TABLE.columns,
)


def judged(
    now: SourceTable, partitions: Any = "follow", accepted: Accepted | None = None, before: SourceTable = PARTED
) -> Plan:
    known = known_as(before, accepted=accepted or Accepted(before.shape))
    return plan(known, now, policy=Policy(on_dropped_partition=partitions))


def parted(*leaves: Leaf) -> SourceTable:
    return replace(PARTED, leaves=leaves)


def read(found: Plan) -> LeafRead:
    assert found.leaves_read is not None, found.reason
    return found.leaves_read


def test_an_attached_partition_alone_is_read_and_ranges_that_stay_are_joined() -> None:
    found = judged(parted(ONE, TWO, THREE, NEW))
    assert (
        found.reason
        == "partition p9 was attached, and nothing tells rows that it had then from rows that it took since"
    )
    assert read(found) == LeafRead(
        frozenset({9}), ([[1, "int", "0", "20", None]], [[1, "int", "30", "40", None]]), ("p9",)
    )


def test_a_partition_that_went_meanwhile_needs_no_bounds_of_its_own() -> None:
    found = read(judged(parted(ONE, THREE, NEW)))
    assert found.stays == ([[1, "int", "0", "10", None]], [[1, "int", "30", "40", None]])
    assert found.changed == ("p2", "p9")


def test_one_that_was_detached_and_attached_again_is_read() -> None:
    again = replace(TWO, chain=("2 100 99",), attached=("2 100 99",))
    assert read(judged(parted(ONE, again, THREE))).leaves == {2}


def test_what_the_lake_cannot_tell_is_read_along() -> None:
    default = replace(leaf(4, 0, 0), bound=())
    before = parted(ONE, TWO, default)
    found = judged(parted(ONE, TWO, default, NEW), before=before)
    assert read(found).leaves == {4, 9}
    # with a default partition bounds do not tell what was of one that is gone
    assert read(judged(parted(ONE, default), before=before)).leaves == {4}


def test_unlogged_and_foreign_partitions_are_not_read() -> None:
    assert read(judged(parted(ONE, TWO, THREE, replace(NEW, persistence="u")))).leaves == frozenset()


def test_without_a_partition_that_stays_the_table_is_copied() -> None:
    moved = tuple(replace(each, file=77 + each.oid) for each in PARTED.leaves)
    assert judged(parted(*moved, NEW)).leaves_read is None


def test_other_doubts_beside_need_a_copy() -> None:
    now = parted(ONE, TWO, THREE, NEW)
    assert judged(replace(now, filter="other")).leaves_read is None
    assert judged(replace(now, enums={900: ("low",)}, part_versions={900: ("1",)})).leaves_read is None
    assert judged(replace(now, columns=(*now.columns, GIVEN))).leaves_read is not None


def test_an_added_column_has_the_default_of_the_partitions_that_stay() -> None:
    there = [replace(each, missing=(("given", "x"),)) for each in PARTED.leaves]
    now = parted(*there, replace(NEW, missing=(("given", "another"),)))
    found = judged(replace(now, columns=(*now.columns, replace(GIVEN, missing_text="another"))))
    assert found.leaves_read is not None
    assert found.columns[-1].missing_text == "x"


def test_where_nobody_has_chosen_a_partition_that_is_gone_needs_a_copy() -> None:
    assert judged(parted(ONE, THREE, NEW), None).leaves_read is None
    assert judged(parted(ONE, TWO, THREE, NEW), None).leaves_read is not None


def gone(one: Leaf, **other: Any) -> Accepted:
    (condition,) = one.bound
    note = GonePartition(one.oid, one.name, (replace(condition, column=1),), Lsn(16), kept=True, file=one.oid)
    return Accepted(PARTED.shape, gone=(replace(note, **other),))


def test_rows_that_only_the_lake_has_stay_until_their_partition_is_back_as_it_was() -> None:
    kept = leaf(7, 70, 80)
    found = read(judged(parted(ONE, TWO, THREE, NEW), "keep", gone(kept)))
    assert [[1, "int", "70", "80", None]] in found.stays
    assert [each.oid for each in found.kept] == [7]

    back = leaf(7, 70, 80, attached=True)
    found = read(judged(parted(ONE, TWO, THREE, back), "keep", gone(kept)))
    assert (found.leaves, found.kept) == ({7}, ())
    assert judged(parted(ONE, TWO, THREE, replace(back, file=700)), "keep", gone(kept)).leaves_read is None
    assert judged(parted(ONE, TWO, THREE, leaf(9, 75, 76, attached=True)), "keep", gone(kept)).leaves_read is None


def test_a_partition_that_goes_under_keep_stays_in_the_lake() -> None:
    found = read(judged(parted(ONE, THREE, NEW), "keep"))
    assert [(each.oid, each.kept) for each in found.kept] == [(2, True)]
    assert found.stays == ([[1, "int", "0", "20", None]], [[1, "int", "30", "40", None]])
    # and what may have been truncated by itself is not taken for what it was
    assert judged(parted(ONE, replace(TWO, file=22), THREE), "keep").leaves_read is None


def test_bounds_whose_rows_are_still_to_go_do_not_stay() -> None:
    again = leaf(9, 12, 15)
    before = parted(ONE, THREE, again)
    accepted = Accepted(before.shape, gone=gone(TWO, kept=False).gone)
    assert read(
        judged(parted(ONE, THREE, again, leaf(8, 60, 70, attached=True)), accepted=accepted, before=before)
    ).leaves == {8, 9}


OTHER = replace(ONE, identity="n")


@pytest.mark.parametrize(
    ("table", "wrong", "ends"),
    [
        pytest.param(TABLE, None, None, id="a key"),
        pytest.param(replace(TABLE, identity="n"), "it has no primary key", "one replica identity", id="none"),
        pytest.param(
            replace(TABLE, identity="n", late_key=True), "deferrable: two", "full for it, or", id="a deferrable one"
        ),
        pytest.param(replace(TABLE, late_key=True), None, None, id="whole rows beside a deferrable one"),
        pytest.param(
            replace(PARTED, identity="n", late_key=True),
            "deferrable, in a partition at least",
            "full for it and each partition",
            id="a deferrable one of partitions",
        ),
        pytest.param(parted(ONE, OTHER), "than the partitioned table: public.p1", "one replica identity", id="others"),
        pytest.param(replace(TABLE, leaves=(OTHER,)), None, None, id="a plain table is its own leaf"),
    ],
)
def test_what_is_wrong_with_an_identity_is_said_with_what_ends_it(
    table: SourceTable, wrong: str | None, ends: str | None
) -> None:
    why, step = row_identity.misread(table) or (None, None)

    assert (why is None, step is None) == (wrong is None, ends is None)
    assert (wrong or "") in (why or "")
    assert (ends or "") in (step or "")


def test_names_of_other_objects_tell_rows_apart_in_a_key_and_in_whole_rows_only() -> None:
    named = SourceColumn("r", 2, TEXT, names_objects="regclass")
    beside = source_table(columns=(ID, named), identity="f")
    whole, key = replace(beside, key=()), replace(beside, columns=(ID, replace(named, key=True)), key=("id", "r"))

    assert row_identity.unfound(beside) is None
    assert row_identity.names_beside_key(beside) == [named]
    row_identity.require_found([beside])
    for table in (whole, key):
        assert row_identity.names_beside_key(table) == []
        with pytest.raises(SourceError, match=r"public\.t: .*r \(regclass\)"):
            row_identity.require_found([beside, table])


def test_partitions_without_wal_are_those_with_rows_of_their_own() -> None:
    unlogged = replace(TWO, persistence="u")
    now = parted(ONE, unlogged, replace(THREE, persistence="u", kind="f"))

    assert row_identity.unlogged_partitions(now) == [unlogged]
    assert row_identity.unlogged_partitions(replace(now, kind="r")) == []
