"""What follows from each change of a source table: the shape before and after, what else is known, and the plan."""

import json
from dataclasses import dataclass, replace
from typing import Any, get_args

import pytest

from penstock.shapes.accepted import Accepted
from penstock.shapes.changes import Change, LeafAttached
from penstock.shapes.mirror_column import MirrorColumn, refilled
from penstock.shapes.plan import Plan, plan
from penstock.shapes.reads import ColumnRead, LeafRead, altered_with_its_rows, leaves_to_inspect
from penstock.shapes.rules import RULES, effect
from penstock.shapes.source_table import Leaf, SourceColumn, SourceTable
from penstock.shapes.steps import ADDED_ONLY, ORDER, EventName, Evidence, Policy
from penstock.values.pgtype import PgType
from tests.shapes.tables import BIGINT, HEAP, ID, INT, TEXT, known_as, planned, source_table

MOOD = PgType(900, -1, "public", "mood", "e")
MOODS = PgType(901, -1, "public", "_mood", "b", element=MOOD)
PAIR = PgType(950, -1, "public", "pair", "c")
VARCHAR = PgType(1043, 24, "pg_catalog", "varchar", "b")
NAME = SourceColumn("name", 2, TEXT, version="700")
GIVEN = SourceColumn("given", 3, TEXT, version="705")
STATE = SourceColumn("state", 4, TEXT)
N = SourceColumn("n", 5, INT, version="700")
M = SourceColumn("m", 6, MOOD, version="700", parts=frozenset({900}))
TABLE = source_table(
    columns=(ID, NAME),
    hidden={3: "given"},
    enums={900: ("low", "high")},
    membership=("table 1",),
    part_versions={900: ("1 700", "2 700")},
    part_names={900: "level"},
)
PARTITIONED = replace(TABLE, kind="p")
SHORT = replace(TABLE, columns=(ID, replace(NAME, type=VARCHAR)))
NUMBERED = replace(TABLE, columns=(ID, N))
LABELLED = replace(TABLE, columns=(ID, NAME, M))
NEWER = replace(HEAP, file=201)
TOUCHED = replace(NAME, version="705")
REWRITTEN = replace(TABLE, leaves=(NEWER,), columns=(ID, TOUCHED))
WIDER = replace(NUMBERED, leaves=(NEWER,), columns=(ID, replace(N, type=BIGINT, version="705")))
BY_NAME = replace(TABLE, identity="i", columns=(replace(ID, key=False), replace(NAME, key=True)), key=("name",))
NO_KEY = replace(TABLE, columns=(replace(ID, key=False), NAME), key=())
WHOLE_ROWS, INSERTS_ONLY = replace(NO_KEY, identity="f"), replace(NO_KEY, identity="n")
RENAMED_LABEL = {"enums": {900: ("low", "top")}, "part_versions": {900: ("1 700", "2 705")}}
BORN = replace(HEAP, oid=101, name="t_2", file=101)  # a table's first file bears its oid
ATTACH = "101 100 705"
ATTACHED = replace(BORN, chain=(ATTACH,), attached=(ATTACH,))
ALL, DROPS = Policy(), Policy(on_dropped_column="drop")
FOLLOWS, KEEPS = Policy(on_dropped_partition="follow"), Policy(on_dropped_partition="keep")
NOTHING = Evidence()
HARMLESS = Evidence(rows_sent=frozenset({100, 101}))
TRUNCATED = Evidence(files_explained=frozenset({100, 101}))
VALUES_KEPT = Evidence(values_kept={2, 5})
EMPTY = Evidence(empty_in={100: "10:10:"})


@dataclass(frozen=True)
class Case:
    """Name a change, and say what it needs, if anything, and what is followed.

    `reason` is a part of why the table waits, "" where it does not; `read` are the columns of which the values are enough.
    """

    name: str
    now: SourceTable | None
    before: SourceTable = TABLE
    policy: Policy = ADDED_ONLY
    evidence: Evidence = NOTHING
    reason: str = ""
    read: ColumnRead | None = None
    events: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None


def columns(*there: SourceColumn, before: SourceTable = TABLE, **other: Any) -> SourceTable:
    """Return a table with other columns."""
    return replace(before, columns=there, **other)


def leaves(*there: Leaf) -> SourceTable:
    """Return the partitioned table with these partitions."""
    return replace(PARTITIONED, leaves=there)


def added_with(type_: PgType, text: str) -> SourceTable:
    """Return the table with a column of a constant default."""
    return columns(ID, NAME, SourceColumn("marks", 4, type_, missing_text=text))


def pairs(names: str, *versions: str, types: int = 23) -> SourceTable:
    """Return a table with a pair of these attributes, whose catalog rows have these versions."""
    held = columns(ID, replace(NAME, type=PAIR, parts=frozenset({950, 23})))
    known = {**TABLE.part_versions, 950: versions}
    return replace(held, composites={950: tuple((name, types, -1) for name in names)}, part_versions=known)


def values(*attnums: int, labels: tuple[str, ...] | None = None) -> ColumnRead:
    return ColumnRead(frozenset(attnums), labels)


PAIRS = pairs("xy", "1 700", "2 700")
ARRAY = PgType(1007, -1, "pg_catalog", "_int4", "b", element=INT)
REAL = PgType(700, -1, "pg_catalog", "float4", "b")
HSTORE, FLOAT8 = PgType(70001, -1, "public", "hstore", "b"), PgType(701, -1, "pg_catalog", "float8", "b")
DATE = PgType(1082, -1, "pg_catalog", "date", "b")
NO_FORM = "column marks was added with a constant default that the lake's column cannot have"
ALTERED = "column name was altered and the table rewritten"
ADDED = "column state was added and the table rewritten"
OTHER_KEY = "the replica identity changed"
OTHER_LABEL = "label of enum level was renamed or moved, perhaps back"
OTHER_ATTRIBUTE = "composite type 950 got or lost an attribute"
OTHER_IDENTITY = "another replica identity than"
FOREIGN = replace(HEAP, kind="f")
GONE, TAKEN = (
    "detached or dropped with its rows",
    "was attached and rewritten or truncated: rows that it took may be gone",
)
ADD, DROP, RENAME, RETYPE = ("add-column",), ("drop-column",), ("rename-column",), ("retype-column",)

SAME = (
    Case("nothing", TABLE),
    Case("a new heap alone, of vacuum full or truncate", replace(TABLE, file=201, leaves=(NEWER,))),
    Case(
        "a label added",
        replace(TABLE, enums={900: ("low", "mid", "high")}, part_versions={900: ("1 700", "3", "2 700")}),
    ),
    Case("a partition created in its place", leaves(HEAP, BORN), PARTITIONED),
)
ADDED_COLUMNS = (
    Case("added without a default", columns(ID, NAME, STATE), events=ADD),
    Case("added with a constant", columns(ID, NAME, replace(STATE, missing_text="new")), events=ADD),
    *(
        Case(f"added with {text}", added_with(type_, text), policy=policy, reason=NO_FORM, read=read)
        for type_, text in ((ARRAY, "{1,2}"), (HSTORE, '"k"=>"v"'), (FLOAT8, "NaN"), (DATE, "infinity"))
        for policy, read in ((ALL, values(4)), (ADDED_ONLY, None))
    ),
    Case("added, all rewritten", columns(ID, NAME, STATE, leaves=(NEWER,)), policy=ALL, reason=ADDED, read=values(4)),
    Case("added, rows as old as ever", columns(ID, NAME, STATE, leaves=(NEWER,)), evidence=HARMLESS, reason=ADDED),
    Case("added, truncated", columns(ID, NAME, STATE, leaves=(NEWER,)), evidence=TRUNCATED, events=ADD),
    Case(
        "another of a hidden one's name",
        columns(ID, NAME, replace(GIVEN, attnum=9)),
        reason="was generated or not published",
    ),
    Case(
        "a hidden one under another name",
        columns(ID, NAME, replace(GIVEN, name="g2")),
        reason="was generated or not published",
    ),
    Case("a hidden one", columns(ID, NAME, GIVEN), policy=ALL, reason="was generated or not published", read=values(3)),
)
CHANGED_COLUMNS = (
    Case("renamed", columns(ID, replace(NAME, name="title")), policy=ALL, events=RENAME, columns=("id", "title")),
    Case("renamed, while it is copied", columns(ID, replace(NAME, name="title")), reason="renamed to title"),
    Case("dropped and kept", columns(ID), policy=ALL, events=DROP, columns=("id", "name")),
    Case("dropped in the lake, too", columns(ID), policy=DROPS, events=DROP, columns=("id",)),
    Case("dropped, while it is copied", columns(ID), reason="column name was dropped"),
    Case(
        "another of its name",
        columns(ID, replace(NAME, attnum=4)),
        policy=ALL,
        events=(*DROP, *ADD),
        columns=("id", "name__dropped_2", "name"),
    ),
    Case(
        "another of its name, while it is copied",
        columns(ID, replace(NAME, attnum=3)),
        reason="column name was dropped",
    ),
    Case(
        "not in the stream any more",
        columns(ID, hidden={2: "name", 3: "given"}),
        policy=ALL,
        reason="is not in the stream any more",
    ),
    Case(
        "a key column dropped in the lake, too",
        replace(INSERTS_ONLY, columns=(NAME,)),
        policy=DROPS,
        reason="id was dropped, and older changes find their rows by it",
    ),
    Case(
        "dropped where whole rows are compared",
        replace(WHOLE_ROWS, columns=(replace(ID, key=False),)),
        policy=ALL,
        reason="column name was dropped, and without a key",
    ),
    Case(
        "longer",
        columns(ID, replace(NAME, type=replace(VARCHAR, typmod=54))),
        SHORT,
        ALL,
        events=RETYPE,
        columns=("id", "name"),
    ),
    Case("without a limit", columns(ID, NAME), SHORT, ALL, events=RETYPE, columns=("id", "name")),
    Case(
        "of another type",
        columns(ID, replace(NAME, type=INT)),
        policy=ALL,
        reason="changed its type from text to integer",
        read=values(2),
    ),
    Case(
        "of another type, while it is copied",
        columns(ID, replace(NAME, type=INT)),
        reason="changed its type from text to integer",
    ),
    Case(
        "of another length, while it is copied",
        columns(ID, replace(NAME, type=replace(TEXT, typmod=44))),
        reason="changed its type",
    ),
    Case("wider", WIDER, NUMBERED, ALL, reason="changed its type from integer to bigint", read=values(5)),
    Case("wider, told to have the same values", WIDER, NUMBERED, ALL, VALUES_KEPT, events=RETYPE),
    Case("narrower, told to have the same values", NUMBERED, WIDER, ALL, VALUES_KEPT, reason="type", read=values(5)),
    *(
        Case(
            f"a real to double precision, {what}told to have the same values",
            now,
            before,
            ALL,
            VALUES_KEPT,
            reason=reason,
        )
        for what, key, reason in (("", False, ""), ("of the key, though ", True, "changed its type"))
        for before, now in [
            [columns(replace(ID, key=not key), replace(N, type=each, key=key)) for each in (REAL, FLOAT8)]
        ]
    ),
    Case("altered and rewritten", REWRITTEN, policy=ALL, reason=ALTERED, read=values(2)),
    Case("altered and rewritten, while it is copied", REWRITTEN, reason=ALTERED),
    Case(
        "altered and rewritten, and of another type",
        replace(REWRITTEN, columns=(ID, replace(TOUCHED, type=VARCHAR))),
        policy=ALL,
        reason=ALTERED,
        read=values(2),
    ),
    Case("altered and rewritten, rows as old as ever", REWRITTEN, evidence=HARMLESS),
    Case("altered and truncated", REWRITTEN, evidence=TRUNCATED),
    Case("altered and rewritten, told to have the same values", REWRITTEN, evidence=VALUES_KEPT),
    Case("a type that is only called otherwise", columns(ID, replace(NAME, type=replace(TEXT, name="words")))),
    Case("altered without a new file", columns(ID, TOUCHED)),
    Case(
        "a name that the lake keeps for itself",
        columns(ID, replace(NAME, name="_file")),
        policy=ALL,
        reason="a column _file now",
    ),
)
TYPES = (
    Case("a label renamed", replace(TABLE, **RENAMED_LABEL), reason="label of enum level was renamed"),
    Case("a label renamed and back", replace(TABLE, part_versions={900: ("1 700", "2 705")}), reason=OTHER_LABEL),
    Case(
        "a label of a column renamed",
        replace(LABELLED, **RENAMED_LABEL),
        LABELLED,
        ALL,
        reason=OTHER_LABEL,
        read=values(6, labels=("top",)),
    ),
    Case(
        "a label renamed beside a rewrite",
        replace(LABELLED, **RENAMED_LABEL, leaves=(NEWER,), columns=(ID, TOUCHED, M)),
        LABELLED,
        ALL,
        reason=ALTERED,
        read=values(2, 6),
    ),
    *(
        Case(
            f"a label within {what}",
            replace(held, **RENAMED_LABEL),
            held,
            ALL,
            reason=OTHER_LABEL,
            read=values(*attnums),
        )
        for what, held, attnums in (
            ("an array", columns(ID, NAME, replace(M, type=MOODS)), (6,)),
            ("a composite", columns(ID, replace(NAME, type=PAIR, parts=frozenset({950, 900})), M), (2, 6)),
        )
    ),
    *(
        Case(f"attributes {what}", now, PAIRS, ALL, reason=OTHER_ATTRIBUTE, read=values(2))
        for what, now in (
            ("added", pairs("xyz", "1 700", "2 700", "3 709")),
            ("dropped", pairs("x", "1 700", "2 709")),
            ("dropped and added", pairs("xy", "1 700", "2 709", "3 709")),
            ("added and dropped", pairs("xy", "1 700", "2 700", "3 709")),
            ("of another type", pairs("xy", "1 700", "2 709", types=20)),
        )
    ),
    *(
        Case(f"attributes called {names}", pairs(names, *versions), PAIRS, ALL)
        for names, *versions in (("xz", "1 700", "2 709"), ("yx", "1 709", "2 709"), ("xy", "1 709", "2 700"))
    ),
)
TABLES = (
    Case("dropped", None, reason="dropped, or left the publication"),
    Case("in another schema", replace(TABLE, schema="other"), policy=ALL, reason="renamed from public.t to other.t"),
    Case("another filter", replace(TABLE, filter="a1"), policy=ALL, reason="row filter changed"),
    Case("a key and another identity", replace(TABLE, identity="f"), policy=ALL, events=("replica-identity",)),
    Case("a key and the identity of before", TABLE, replace(TABLE, identity="f"), ALL, events=("replica-identity",)),
    Case("another identity, while it is copied", replace(TABLE, identity="f"), reason=OTHER_KEY),
    Case("another key, while it is copied", BY_NAME, reason=OTHER_KEY),
    Case("more of a key, while it is copied", columns(ID, replace(NAME, key=True)), reason=OTHER_KEY),
    Case("another key of partitions", replace(BY_NAME, kind="p"), PARTITIONED, ALL, reason=OTHER_KEY),
    Case(
        "another key of values to be read",
        columns(ID, replace(TOUCHED, key=True), leaves=(NEWER,)),
        policy=ALL,
        reason=OTHER_KEY,
    ),
    Case(
        "another key beside values to be read",
        replace(LABELLED, **RENAMED_LABEL, key=("id", "name"), columns=(ID, replace(NAME, key=True), M)),
        LABELLED,
        ALL,
        reason=OTHER_LABEL,
        read=values(6, labels=("top",)),
        events=("change-key",),
    ),
    *(
        Case(f"{what}, for {whom}", now, policy=Policy(sends_old=sends_old), reason=reason)
        for whom, sends_old, by_name in (("updates", True, "whose text is the name"), ("inserts alone", False, ""))
        for what, now, reason in (
            ("a key of names", columns(replace(ID, names_objects="regclass"), NAME), by_name),
            ("a name of the lake's", columns(ID, NAME, replace(STATE, name="_file")), "a column _file now"),
        )
    ),
    Case(
        "a key that is enforced late",
        replace(INSERTS_ONLY, late_key=True, identity="d"),
        policy=ADDED_ONLY,
        reason="the key is deferrable now",
    ),
)
PARTITIONS = (
    Case("emptied before it was seen", leaves(HEAP, replace(BORN, file=300)), PARTITIONED, reason="new file"),
    Case("with a new file", leaves(NEWER), PARTITIONED, reason="new file"),
    Case("with a new file of a lower number", leaves(HEAP), leaves(NEWER), reason="new file"),
    Case("with a new file, rows as old as ever", leaves(NEWER), PARTITIONED, evidence=HARMLESS),
    Case("with a new file, truncated with all", leaves(NEWER), PARTITIONED, evidence=TRUNCATED),
    Case("with a new file, told to have the same values", leaves(NEWER), PARTITIONED, evidence=VALUES_KEPT),
    Case(
        "new and emptied, though others are told",
        leaves(HEAP, replace(BORN, file=300)),
        PARTITIONED,
        evidence=VALUES_KEPT,
        reason="new file",
    ),
    Case("truncated by itself", leaves(NEWER), PARTITIONED, KEEPS, EMPTY, events=("truncate-partition",)),
    Case(
        "truncated by itself, nothing chosen",
        leaves(NEWER),
        PARTITIONED,
        ALL,
        EMPTY,
        reason="was truncated by itself with its rows, and lake.on_dropped_partition",
    ),
    Case("attached with rows", leaves(HEAP, ATTACHED), PARTITIONED, reason="was attached, and nothing tells rows"),
    Case("attached, rows all sent", leaves(HEAP, ATTACHED), PARTITIONED, evidence=HARMLESS),
    Case(
        "attached and truncated",
        leaves(HEAP, replace(ATTACHED, file=300)),
        PARTITIONED,
        evidence=HARMLESS,
        reason=TAKEN,
    ),
    Case(
        "attached and rewritten, in a window with a TRUNCATE",
        leaves(HEAP, replace(ATTACHED, file=300)),
        PARTITIONED,
        evidence=replace(HARMLESS, files_explained=frozenset({101})),
        reason=TAKEN,
    ),
    Case("left with rows", leaves(), PARTITIONED, reason=GONE),
    Case(
        "left with rows, nothing chosen",
        leaves(),
        PARTITIONED,
        ALL,
        reason=f"{GONE}, and lake.on_dropped_partition does not say",
    ),
    Case(
        "left with rows that nothing tells apart", leaves(), PARTITIONED, FOLLOWS, reason="its bounds do not tell them"
    ),
    Case("left with rows that are kept", leaves(), PARTITIONED, KEEPS, events=("drop-partition",)),
    Case(
        "detached and attached again",
        leaves(replace(HEAP, chain=("100 99 710",))),
        PARTITIONED,
        reason="detached and attached again",
    ),
    Case("unlogged", leaves(replace(HEAP, persistence="u")), PARTITIONED, reason="is unlogged"),
    *(
        Case(
            f"altered {what}",
            leaves(replace(HEAP, altered_by=now)),
            leaves(replace(HEAP, altered_by=before)),
            reason=reason,
        )
        for what, before, now, reason in (
            ("by another", 7, 8, "was altered and has a unique index"),
            ("by the same", 7, 7, ""),
            ("and logs whole rows again", 7, None, ""),
        )
    ),
    Case("a foreign one", leaves(HEAP, replace(FOREIGN, oid=102)), PARTITIONED, reason="is a foreign table"),
    *(
        Case(
            f"with another identity, {what}",
            replace(root, leaves=(now,)),
            replace(root, leaves=(before,)),
            reason=reason,
        )
        for what, root, before, now, reason in (
            ("of another key", PARTITIONED, HEAP, replace(HEAP, key=("name",)), OTHER_IDENTITY),
            ("none", PARTITIONED, HEAP, replace(HEAP, identity="n"), OTHER_IDENTITY),
            ("whole rows", PARTITIONED, HEAP, replace(HEAP, identity="f"), ""),
            (
                "less than whole rows",
                replace(PARTITIONED, identity="f"),
                replace(HEAP, identity="f"),
                HEAP,
                OTHER_IDENTITY,
            ),
            ("for inserts only", replace(PARTITIONED, identity="n"), HEAP, replace(HEAP, key=("name",)), ""),
            ("foreign", PARTITIONED, FOREIGN, replace(FOREIGN, key=("name",)), ""),
        )
    ),
)
MORE_THAN_VALUES = tuple(
    Case(f"altered and rewritten, and {what}", replace(REWRITTEN, **but), before, ALL, reason="name was altered")
    for what, but, before in (
        ("called otherwise", {"name": "other"}, TABLE),
        ("its key", {"columns": (replace(ID, version="705"), TOUCHED)}, TABLE),
        ("partitioned", {"kind": "p", "leaves": (replace(HEAP, oid=101, file=300),)}, TABLE),
        ("may be unlogged", {"membership": ("schema 1",)}, TABLE),
        ("filtered", {"filter": "x"}, replace(TABLE, filter="x")),
        ("without a key", {"identity": "f", "key": (), "columns": (replace(ID, key=False), TOUCHED)}, WHOLE_ROWS),
    )
)
CASES = (*SAME, *ADDED_COLUMNS, *CHANGED_COLUMNS, *TYPES, *TABLES, *PARTITIONS, *MORE_THAN_VALUES)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_what_follows_from_a_change(case: Case) -> None:
    accepted = Accepted.from_json(json.loads(json.dumps(Accepted(case.before.shape).to_json())))

    known = known_as(case.before, accepted=accepted)

    found = plan(known, case.now, case.evidence, case.policy)

    assert case.reason in (found.reason or "")
    assert (found.reason is None) == (not case.reason), found.reason
    assert found.columns_read == case.read
    assert plan(known, case.now, case.evidence, replace(case.policy, follows=False)).columns_read is None
    if case.events is not None:
        assert tuple(event.name for event in found.events) == case.events
    if case.columns is not None:
        assert tuple(column.name for column in found.columns) == case.columns
    if case in SAME:
        assert found == Plan(planned(case.before), case.before.identity)


def test_an_added_column_has_the_value_that_old_rows_show_and_no_reason_shows_one() -> None:
    found = plan(known_as(TABLE), columns(ID, NAME, replace(STATE, missing_text="new")))
    assert found.columns[-1].missing_text == "new"
    assert "{1,2}" not in (plan(known_as(TABLE), added_with(ARRAY, "{1,2}")).reason or "")


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        (TABLE, BY_NAME, "the key is (name) now, it was (id)"),
        (TABLE, WHOLE_ROWS, "the key is the whole row now, it was (id)"),
        (WHOLE_ROWS, TABLE, "the key is (id) now, it was the whole row"),
        (TABLE, INSERTS_ONLY, "the key is none, for inserts only now, it was (id)"),
        (INSERTS_ONLY, WHOLE_ROWS, "the key is the whole row now, it was none, for inserts only"),
        (TABLE, replace(INSERTS_ONLY, columns=(NAME,)), "the key is none, for inserts only now, it was (id)"),
    ],
    ids=["another", "to whole rows", "from whole rows", "to none", "from none to whole rows", "dropped"],
)
def test_another_key_is_followed(before: SourceTable, now: SourceTable, text: str) -> None:
    found = plan(known_as(before), now, policy=ALL)

    assert found.reason is None
    assert [each.text for each in found.events if each.name in ("change-key", "drop-key")] == [text]
    assert {each.attnum for each in found.columns if each.key} == {each.attnum for each in now.columns if each.key}


def test_whole_rows_tell_nothing_apart_where_the_lake_keeps_a_dropped_column() -> None:
    kept = (*planned(TABLE), replace(planned(TABLE)[1], name="old", attnum=4, dropped=True))

    found = plan(known_as(TABLE, columns=kept), WHOLE_ROWS, policy=ALL)

    assert "column old was dropped, and without a key" in (found.reason or "")


def test_the_rows_of_a_partition_with_a_new_file_or_of_one_that_was_attached_are_inspected() -> None:
    known = planned(PARTITIONED), PARTITIONED.shape

    assert leaves_to_inspect(*known, leaves(HEAP, ATTACHED)).arrived == (LeafAttached(ATTACHED),)
    assert leaves_to_inspect(*known, leaves(NEWER)).files == (NEWER,)
    assert leaves_to_inspect(planned(TABLE), TABLE.shape, replace(TABLE, leaves=(NEWER,))).files == ()


@pytest.mark.parametrize(("wrote", "altered"), [(705, True), (706, False)], ids=["the same", "another"])
def test_a_transaction_that_altered_a_column_may_have_written_the_file(wrote: int, altered: bool) -> None:
    known, file = (planned(TABLE), TABLE.shape), replace(NEWER, changed_by=wrote)
    added = replace(STATE, version="705")

    assert altered_with_its_rows(*known, replace(REWRITTEN, leaves=(file,))) is altered
    assert altered_with_its_rows(*known, columns(ID, NAME, added, leaves=(file,))) is altered
    assert not altered_with_its_rows(*known, columns(ID, NAME, replace(added, missing_text="x"), leaves=(file,)))


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        (Plan(reason="x"), "copy"),
        (Plan(reason="x", slug="target-clash"), "person"),
        (Plan(reason="x", columns_read=values(2)), "read"),
        (Plan(reason="x", leaves_read=LeafRead(frozenset(), ())), "read"),
    ],
    ids=["a copy", "a person", "columns", "partitions"],
)
def test_a_table_stops_until_what_its_plan_needs(found: Plan, remedy: str) -> None:
    assert (found.trouble.remedy, found.trouble.reason) == (remedy, "x")


def test_a_row_filter_that_was_not_asked_for_is_not_taken_for_none() -> None:
    filtered = replace(TABLE, filter="a1")

    assert (TABLE.where, replace(filtered, row_filter="n > 1").where) == (None, "n > 1")
    with pytest.raises(AssertionError, match=r"public\.t was not asked for"):
        assert filtered.where


def test_a_partition_created_below_one_that_was_attached_long_ago_need_not_be_inspected() -> None:
    old = replace(HEAP, oid=102, chain=(ATTACH, "102 101 706"), attached=(ATTACH,))
    new = replace(HEAP, oid=103, chain=(ATTACH, "103 101 707"), attached=(ATTACH,))

    assert plan(known_as(leaves(old)), leaves(old, new)).reason is None


def test_only_a_new_file_or_an_arrival_is_left_to_rows_and_stream() -> None:
    assert plan(known_as(PARTITIONED), leaves(NEWER)).asks
    assert plan(known_as(PARTITIONED), leaves(HEAP, ATTACHED)).asks
    assert plan(known_as(TABLE), REWRITTEN).asks
    assert not plan(known_as(TABLE), replace(TABLE, filter="a1")).asks


def test_a_type_that_the_lakes_field_cannot_become_begins_another_generation() -> None:
    before = planned(NUMBERED)

    def generations(type_: PgType) -> list[int]:
        after: tuple[MirrorColumn, ...] = (before[0], replace(before[1], type=type_))
        return [column.generation for column in refilled(after, before, {5})]

    assert generations(BIGINT) == [0, 0], "Iceberg widens it"
    assert generations(TEXT) == [0, 1]


def test_there_is_a_rule_for_every_change() -> None:
    assert RULES.keys() == set(get_args(Change))


@pytest.mark.parametrize("on_dropped", ["follow", "keep"])
@pytest.mark.parametrize("name", get_args(EventName))
def test_every_event_by_which_capture_follows_a_change_is_explained(name: EventName, on_dropped: Any) -> None:
    means = effect(name, Policy(on_dropped_partition=on_dropped))

    assert means.outcome in ORDER
    assert means.cost
    assert not means.readers.endswith(".")


def test_a_column_that_the_lake_drops_as_well_is_a_loss() -> None:
    assert effect("drop-column", Policy(on_dropped_column="drop")).outcome == "loses"
