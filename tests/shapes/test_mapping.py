"""Which of the catalog's columns a relation of the stream has, by looks before and after it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lsn import Lsn
from penstock.shapes.accepted import Accepted
from penstock.shapes.known_shape import ColumnState, KnownShape
from penstock.shapes.mapping import fit
from penstock.shapes.mirror_column import MirrorColumn, present
from penstock.shapes.timeline import DROPPED, History, RelationMapping, columns_of, first_columns, mapping_of
from penstock.values.pgtype import PgType
from penstock.wire.messages import Relation, RelationColumn
from tests.shapes.tables import shape, table_record

INT, TEXT, VARCHAR = 23, 25, 1043


def look(count: int | None = None, /, **columns: str) -> KnownShape:
    """Look at columns `n1="id int"`, by attnum."""
    states: dict[int, ColumnState] = {}
    for attnum, text in columns.items():
        name, _, type_ = text.partition(" ")
        states[int(attnum[1:])] = (name, {"": TEXT, "int": INT, "varchar": VARCHAR}[type_], -1)
    return KnownShape(count or max(states, default=0), states)


def attnums(sent: Relation, found: Sequence[KnownShape]) -> tuple[int, ...] | None:
    return columns_of(sent, [0], History(found))


def relation(*names: str) -> Relation:
    columns = (each.partition(" ")[::2] for each in names)
    return Relation(
        7,
        "public",
        "t",
        "d",
        tuple(RelationColumn(name, INT if type_ else TEXT, -1, name == "id") for name, type_ in columns),
    )


def test_a_relation_that_one_look_has_found_is_read_by_that_look() -> None:
    before, after = look(n1="id int", n2="a"), look(n1="id int", n3="b int")

    assert attnums(relation("id int", "a"), [before, after]) == (1, 2)
    assert attnums(relation("id int", "b int"), [before, after]) == (1, 3)


def test_a_name_does_not_tell_a_dropped_column_from_an_added_one_of_its_type() -> None:
    """The dropped one may have had the other's name for a while."""
    before, after = look(n1="id int", n2="x"), look(n1="id int", n3="z")

    assert attnums(relation("id int", "z"), [before, after]) is None
    assert attnums(relation("id int", "x"), [before, after]) is None


def test_an_added_column_is_read_by_its_place_whatever_another_one_was_called_later() -> None:
    before, after = look(n1="id int"), look(n1="id int", n2="d", n3="c")

    assert attnums(relation("id int", "c"), [before, after]) == (1, 2)


def test_a_column_that_was_added_and_got_another_type_is_read_where_all_are_there() -> None:
    before, after = look(n1="id int"), look(n1="id int", n2="a", n3="b")

    assert attnums(relation("id int", "a int", "b"), [before, after]) == (1, 2, 3)
    assert attnums(relation("id int", "a int"), [before, after]) is None, "a may have been generated, and this be b"


def test_which_of_two_dropped_columns_is_still_there_is_not_guessed_by_its_name() -> None:
    before, after = look(n1="id int", n2="a", n3="b", n4="c int"), look(n1="id int", n4="c int")

    assert attnums(relation("id int", "b", "c int"), [before, after]) == (1, DROPPED, 4), "a may have got the name b"
    assert attnums(relation("id int", "a", "b", "c int"), [before, after]) == (1, 2, 3, 4)


def test_dropped_columns_are_told_apart_by_their_types() -> None:
    before, after = look(n1="id int", n2="a", n3="b int", n4="c"), look(n1="id int", n4="c")

    assert attnums(relation("id int", "b int", "c"), [before, after]) == (1, 3, 4)
    assert attnums(relation("id int", "a", "c"), [before, after]) == (1, 2, 4)


def test_a_column_that_may_be_a_dropped_one_or_one_that_stays_is_not_guessed() -> None:
    before, after = look(n1="id int", n2="a", n3="b", n4="c"), look(n1="id int", n3="b")

    assert attnums(relation("id int", "b", "c"), [before, after]) is None


def test_columns_that_were_always_there_are_read_by_their_places_whatever_they_were_called() -> None:
    before, after = look(n1="id int", n2="a", n4="b"), look(n1="id int", n2="b", n4="a")

    assert attnums(relation("id int", "c", "a"), [before, after]) == (1, 2, 4)
    assert attnums(relation("id int", "a", "b"), [before, before]) == (1, 2, 4)


def test_columns_added_one_after_the_other_are_read_in_their_order() -> None:
    before, after = look(n1="id int"), look(n1="id int", n2="a", n3="b", n4="c")

    assert attnums(relation("id int", "a"), [before, after]) == (1, 2)
    assert attnums(relation("id int", "a", "b"), [before, after]) == (1, 2, 3)


def test_two_hundred_changes_between_two_looks_are_read() -> None:
    before = look(**{f"n{n}": f"a{n}" for n in range(1, 101)})
    after = look(**{f"n{n}": f"a{n}{' int' if n > 100 else ''}" for n in range(51, 151)})
    first = relation(*(f"a{n}{' int' if n > 100 else ''}" for n in range(1, 131)))
    last = relation(*(f"a{n}{' int' if n > 100 else ''}" for n in range(51, 131)))
    between = relation(*(f"a{n}{' int' if n > 100 else ''}" for n in range(21, 131)))

    assert attnums(first, [before, after]) == tuple(range(1, 131))
    assert attnums(last, [before, after]) == tuple(range(51, 131))
    assert attnums(between, [before, after]) == (DROPPED,) * 30 + tuple(range(51, 131)), "names prove nothing"


def test_a_column_that_was_dropped_and_added_again_between_two_looks_is_not_guessed() -> None:
    before, after = look(n1="id int", n2="a"), look(n1="id int", n3="a")

    assert attnums(relation("id int", "a"), [before, after]) is None
    assert attnums(relation("id int"), [before, after]) == (1,), "neither was there"
    assert attnums(relation("id int", "a"), [after]) == (1, 3), "later there is no doubt"


def test_columns_that_came_and_went_between_two_looks_are_not_guessed() -> None:
    before, after = look(2, n1="id int", n2="a"), look(4, n1="id int", n2="b", n4="c")

    assert attnums(relation("id int", "b", "x"), [before, after]) is None
    assert attnums(relation("id int", "x"), [before, after]) == (1, 2)


@given(st.data())
def test_a_random_history_is_read_as_it_was_or_not_at_all(data: st.DataObject) -> None:
    """Columns are added, dropped, renamed and retyped; only the first and the last state are looked at."""
    columns: dict[int, ColumnState] = {1: ("id", INT, -1), 2: ("a", TEXT, -1), 3: ("b", TEXT, -1)}
    history, last = [dict(columns)], 3
    for _ in range(data.draw(st.integers(1, 4))):
        match data.draw(st.sampled_from(["add", "drop", "rename"])):
            case "add":
                last += 1
                free = [name for name in "abcdef" if name not in {state[0] for state in columns.values()}]
                columns[last] = (data.draw(st.sampled_from(free)), data.draw(st.sampled_from([INT, TEXT])), -1)
            case "drop" if len(columns) > 1:
                del columns[data.draw(st.sampled_from([n for n in columns if n != 1]))]
            case _:
                n = data.draw(st.sampled_from(sorted(columns)))
                free = [name for name in "abcdef" if name not in {state[0] for state in columns.values()}]
                columns[n] = (data.draw(st.sampled_from(free)), *columns[n][1:])
        history.append(dict(columns))
    looks = [KnownShape(3, history[0]), KnownShape(last, history[-1])]
    for state in history:
        sent = Relation(7, "public", "t", "d", tuple(RelationColumn(*each, False) for each in state.values()))
        others = [
            other for other in history if list(other.values()) == list(state.values()) and list(other) != list(state)
        ]
        found = attnums(sent, looks)
        assert (
            found is None
            or others
            or all(
                number in (attnum, DROPPED) and (number or attnum not in history[-1])
                for number, attnum in zip(found, state, strict=True)
            )
        )


def column(name: str, attnum: int, oid: int = TEXT, *, key: bool = False, dropped: bool = False) -> MirrorColumn:
    names = {INT: "int4", TEXT: "text", 1700: "numeric", 20: "int8"}
    return MirrorColumn(name, attnum, PgType(oid, -1, "pg_catalog", names[oid], "b"), key, dropped=dropped)


def fields(
    *columns: MirrorColumn, sent: Relation, numbers: tuple[int, ...] | None = None
) -> tuple[str | None, ...] | str:
    table = table_record(7, "t", columns=columns, complete_through=Lsn(1))
    found = fit(table, sent, RelationMapping(numbers or first_columns(sent, present(table.columns))))
    return found.reason or found.fields


ID = column("id", 1, INT, key=True)


def test_landed_columns_stand_under_the_lakes_names() -> None:
    assert fields(ID, column("text", 2), sent=relation("id int", "note"), numbers=(1, 2)) == ("id", "text")
    assert fields(ID, sent=relation("id int", "note"), numbers=(1, 2)) == ("id", None)
    kept = column("note__dropped_2", 2, dropped=True)
    assert fields(ID, kept, sent=relation("id int", "note"), numbers=(1, 2)) == ("id", "note__dropped_2")


def test_without_numbers_landed_rows_have_the_tables_columns_or_the_first_of_them() -> None:
    columns = (ID, column("note", 2), column("state", 4))

    assert fields(*columns, sent=relation("id int", "note", "state")) == ("id", "note", "state")
    assert fields(*columns, sent=relation("id int", "note")) == ("id", "note")
    strange = fields(*columns, sent=relation("id int", "gone", "state", "note", "lost"))
    assert "a column gone that cannot be told" in strange


@pytest.mark.parametrize(("sent", "now", "told"), [("id", 20, "changed its type"), ("id int", 25, "changed its type")])
def test_landed_rows_of_another_type_are_refused(sent: str, now: int, told: str) -> None:
    assert told in fields(column("id", 1, now, key=True), sent=relation(sent), numbers=(1,))


def test_landed_rows_of_a_narrower_type_are_those_of_a_column_that_was_widened() -> None:
    assert fields(column("id", 1, 20, key=True), sent=relation("id int"), numbers=(1,)) == ("id",)


def keyed(*names: str, identity: str = "d", key: tuple[str, ...] = ("id",)) -> Relation:
    columns = tuple(RelationColumn(name, TEXT, -1, identity == "f" or name in key) for name in names)
    return Relation(7, "public", "t", identity, columns)


@pytest.mark.parametrize(
    ("identity", "marked", "keys", "found"),
    [
        ("d", ("id",), [((1,), 10), ((2,), 11)], (1,)),
        ("i", ("note",), [((1,), 10), ((2,), 11)], (2,)),
        ("d", (), [((1,), 10), ((), 0)], ()),
        ("f", (), [((1,), 10), ((1,), 10)], (1,)),
        ("f", (), [((1,), 10), ((2,), 11)], ()),
        ("f", (), [((1,), 10), ((1,), 11)], ()),
        ("f", (), [((), 0), ((), 0)], ()),
    ],
    ids=[
        "old",
        "new",
        "none",
        "full with a key",
        "full, another key",
        "full, the key made again",
        "full without a key",
    ],
)
def test_a_message_or_the_looks_around_it_say_by_which_key_its_rows_are_found(
    identity: str, marked: tuple[str, ...], keys: list[tuple[tuple[int, ...], int]], found: tuple[int, ...]
) -> None:
    states = {1: ("id", TEXT, -1), 2: ("note", TEXT, -1)}
    looks = [KnownShape(2, states, key=key, key_index=index) for key, index in keys]

    assert mapping_of(keyed("id", "note", identity=identity, key=marked), [0], History(looks)) == RelationMapping(
        (1, 2), found
    )


@pytest.mark.parametrize(
    ("keys", "hidden", "found"),
    [
        (((1,), (1,)), (), (2,)),
        (((1,), (2,)), (3,), (2,)),
        (((1,), (1,)), (3,), (DROPPED,)),
        (((), ()), (3,), ()),
    ],
    ids=["nothing hidden", "known from a look", "perhaps with a hidden column", "known to have a hidden column"],
)
def test_a_key_that_may_have_a_hidden_column_is_not_believed(
    keys: tuple[tuple[int, ...], ...], hidden: tuple[int, ...], found: tuple[int, ...]
) -> None:
    states = {1: ("id", TEXT, -1), 2: ("note", TEXT, -1)}
    looks = [KnownShape(3, states, key=key, key_index=9, hidden=hidden) for key in keys]

    assert mapping_of(keyed("id", "note", key=("note",)), [0], History(looks)).key == found


@pytest.mark.parametrize(
    ("identity", "key", "found"),
    [("d", (1,), None), ("d", (2,), ("text",)), ("d", (), ()), ("f", (1,), None), ("f", (), ()), ("f", None, None)],
)
def test_landed_rows_are_found_by_the_key_of_their_time_under_the_lakes_names(
    identity: str, key: tuple[int, ...] | None, found: tuple[str, ...] | None
) -> None:
    table = table_record(7, "t", columns=(column("id", 1, key=True), column("text", 2)), complete_through=Lsn(1))

    assert fit(table, keyed("id", "note", identity=identity), RelationMapping((1, 2), key)).key == found


@pytest.mark.parametrize(
    ("columns", "identity", "key", "kind", "told"),
    [
        ((column("note", 2, key=True),), "d", (1,), "r", "a key that is not known"),
        ((column("id", 1, key=True), column("note", 2)), "d", (2,), "p", "partitions change theirs one by one"),
        (
            (column("id", 1, key=True), column("note", 2), column("old", 3, dropped=True)),
            "f",
            (),
            "r",
            "without column old",
        ),
    ],
)
def test_landed_rows_that_cannot_be_found_are_refused(
    columns: tuple[MirrorColumn, ...], identity: str, key: tuple[int, ...], kind: str, told: str
) -> None:
    table = table_record(7, "t", columns=columns, complete_through=Lsn(1), accepted=Accepted(shape(kind=kind)))

    assert told in (fit(table, keyed("id", "note", identity=identity), RelationMapping((1, 2), key)).reason or "")


def test_landed_reals_of_a_column_of_double_precision_are_named() -> None:
    sent = Relation(7, "public", "t", "d", (RelationColumn("n", 700, -1, False), RelationColumn("m", 701, -1, False)))
    double = PgType(701, -1, "pg_catalog", "float8", "b")
    there = tuple(replace(column(name, at), type=double) for at, name in ((1, "n"), (2, "m")))

    assert fit(table_record(7, "t", columns=there), sent, RelationMapping((1, 2))).reals == ("n",)


@pytest.mark.parametrize(
    ("identity", "key", "overwritten", "refused"),
    [("f", (), {2}, True), ("f", (1,), {2}, False), ("d", (), {2}, False), ("f", (), set(), False)],
    ids=["whole rows", "by a key", "for inserts only", "nothing fetched"],
)
def test_whole_rows_are_not_found_by_values_that_were_fetched_since(
    identity: str, key: tuple[int, ...], overwritten: set[int], refused: bool
) -> None:
    table = table_record(7, "t", columns=(column("id", 1, key=bool(key)), column("note", 2), column("later", 3)))
    found = fit(table, keyed("id", "note", identity=identity), RelationMapping((1, 2), key), overwritten)

    assert ("were fetched since" in (found.reason or "")) is refused
    assert (found.reason is None) is not refused


TEXTS = PgType(1009, -1, "pg_catalog", "_text", "b", element=PgType(TEXT, -1, "pg_catalog", "text", "b"))
CITEXT = PgType(70003, -1, "public", "citext", "b")


@pytest.mark.parametrize(
    ("oid", "typmod", "now"),
    [
        (VARCHAR, 24, PgType(TEXT, -1, "pg_catalog", "text", "b")),
        (TEXT, -1, CITEXT),
        (1015, 24, TEXTS),
        (1009, -1, TEXTS),
    ],
    ids=["varchar", "text", "array of varchar", "array of text"],
)
def test_texts_of_any_text_type_stand_in_a_text_column(oid: int, typmod: int, now: PgType) -> None:
    sent = Relation(7, "public", "t", "f", (RelationColumn("note", oid, typmod, True),))

    assert fields(replace(column("note", 1), type=now), sent=sent, numbers=(1,)) == ("note",)


PLAIN = column("note", 1).type
INT4 = ID.type
DECIMAL = PgType(1700, (10 << 16) + 2 + 4, "pg_catalog", "numeric", "b")
OWN = PgType(70002, -1, "public", "mood", "e")


@pytest.mark.parametrize(
    ("base", "now", "stands"),
    [
        ("citext", PLAIN, True),
        ("varchar", PLAIN, True),
        ("int4", INT4, True),
        ("citext", TEXTS, False),
        ("_citext", TEXTS, False),  # the server writes these anew
        ("hstore", PLAIN, False),
        ("", PLAIN, False),
        ("int2", INT4, False),
        ("numeric", DECIMAL, False),  # its digits are not known
        ("mood", OWN, False),  # another type may have had the name
    ],
)
def test_a_type_that_the_stream_names_is_known_by_what_it_is_made_of(base: str, now: PgType, stands: bool) -> None:
    sent = Relation(7, "public", "t", "f", (RelationColumn("note", 70001, -1, True, base),))

    found = fields(replace(column("note", 1), type=now), sent=sent, numbers=(1,))

    assert (found == ("note",)) is stands, found
