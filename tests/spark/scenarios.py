"""What the stream may say and what the mirror must do, one named history each; a judge says what comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.shapes.mirror_column import MirrorColumn
from tests.spark.histories import UNCHANGED, D, I, Row, T, Transaction, U, tx
from tests.spark.workbench import column

Batch = Sequence[Transaction]

KAB = (column("k", "int4", key=True), column("a"), column("b"))
PAIR = (column("x", "int4", key=True), column("y", key=True), column("a"))
BAG = (column("a"), column("n", "int4"))


@dataclass(frozen=True)
class Scenario:
    """A history in batches, with the counts of the last one where they matter, or the reason of a pause.

    Scenarios that need no table of their own share one, as so many histories of it.
    """

    name: str
    batches: Sequence[Batch]
    columns: tuple[MirrorColumn, ...] = KAB
    identity: str | None = None
    copy: Sequence[Row] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    paused: str | None = None

    @property
    def alone(self) -> bool:
        truncates = any(event.op == "T" for batch in self.batches for each in batch for event in each.events)
        return bool(self.counts or self.paused or truncates) or self.copy is not None

    @property
    def keys(self) -> list[str]:
        return [column.name for column in self.columns if column.key]


def move(old: int, new: int, **values: Any) -> Any:
    return U(old={"k": old}, k=new, **values)


ONE = [tx(I(k=1, a="a1", b="b1"))]
TWO = [tx(I(k=1, a="a1", b="b1"), I(k=2, a="a2", b="b2"))]
KEEP: dict[str, Any] = {"a": UNCHANGED, "b": UNCHANGED}

KEYED = [
    Scenario(
        "an insert of a new key is inserted",
        [ONE, [tx(I(k=2, a="x", b="y"))]],
        counts={"inserts": 1, "rows_written": 1, "rows_deleted": 0},
    ),
    Scenario(
        "an insert of a key that exists replaces the row and is counted",
        [ONE, [tx(I(k=1, a="again", b="again"))]],
    ),
    Scenario("an update replaces every column", [TWO, [tx(U(k=1, a="x", b=None))]]),
    Scenario(
        "an update keeps what it leaves out", [TWO, [tx(U(k=1, a="x", b=UNCHANGED), U(k=2, a=UNCHANGED, b=None))]]
    ),
    Scenario("what is left out and NULL in the lake stays NULL", [[tx(I(k=1, a=None, b=""))], [tx(U(k=1, **KEEP))]]),
    Scenario(
        "a delete removes the row",
        [TWO, [tx(D(k=1))]],
        counts={"deletes": 1, "rows_deleted": 1, "rows_written": 0, "delete_missing": 0},
    ),
    Scenario("an update that moves the key removes the old one", [TWO, [tx(move(1, 9, a="x", b="y"))]]),
    Scenario(
        "a moved row takes what it leaves out from the lake's row of the old key", [TWO, [tx(move(1, 9, **KEEP))]]
    ),
    Scenario(
        "a moved row takes what it leaves out from earlier in the batch",
        [TWO, [tx(U(k=1, a="new", b=UNCHANGED), move(1, 9, **KEEP))]],
    ),
    Scenario(
        "a row inserted and moved in one batch keeps what it was inserted with",
        [ONE, [tx(I(k=5, a="five", b="5"), move(5, 6, **KEEP), U(k=6, a="six", b=UNCHANGED))]],
    ),
    Scenario(
        "a chain of moves carries a value from its first key to its last",
        [TWO, [tx(move(1, 10, **KEEP), move(10, 11, a="x", b=UNCHANGED), move(11, 12, **KEEP))]],
    ),
    Scenario(
        "a chain of forty moves carries a value all the way",
        [
            ONE,
            [tx(*(move(k, k + 1, **KEEP) for k in range(1, 21))), tx(*(move(k, k + 1, **KEEP) for k in range(21, 41)))],
        ],
    ),
    Scenario(
        "two keys swapped through a third keep their values apart",
        [TWO, [tx(move(1, 99, **KEEP), move(2, 1, **KEEP), move(99, 2, **KEEP))]],
    ),
    Scenario(
        "three keys rotated twice end where they must",
        [
            [tx(*(I(k=k, a=f"a{k}", b=f"b{k}") for k in (1, 2, 3)))],
            2 * [tx(move(3, 0, **KEEP), move(2, 3, **KEEP), move(1, 2, **KEEP), move(0, 1, **KEEP))],
        ],
    ),
    Scenario("a row moved away and back is the same row", [ONE, [tx(move(1, 2, **KEEP)), tx(move(2, 1, **KEEP))]]),
    Scenario(
        "a key that is taken again after a move holds the new row",
        [TWO, [tx(move(1, 3, **KEEP), I(k=1, a="new", b="new"), move(2, 4, **KEEP), U(k=1, a="newer", b=UNCHANGED))]],
    ),
    Scenario(
        "a chain of moves over several batches carries a value",
        [ONE, [tx(move(1, 2, **KEEP))], [tx(move(2, 3, **KEEP))], [tx(move(3, 4, a="x", b=UNCHANGED))]],
    ),
    Scenario(
        "a moved row that is deleted later in the batch is gone under both keys",
        [TWO, [tx(move(1, 3, **KEEP), D(k=3))]],
        counts={"rows_deleted": 1, "rows_written": 0, "delete_missing": 0},
    ),
    Scenario(
        "a row inserted and deleted in one batch leaves nothing",
        [ONE, [tx(I(k=2, a="x", b="y"), U(k=2, a="z", b=UNCHANGED), D(k=2))]],
    ),
    Scenario("a row updated and deleted in one batch is gone", [TWO, [tx(U(k=1, a="z", b=UNCHANGED)), tx(D(k=1))]]),
    Scenario("a row deleted and inserted again is the new row", [TWO, [tx(D(k=1)), tx(I(k=1, a="new", b=None))]]),
    Scenario(
        "a row deleted, inserted and updated takes what it leaves out from the insert",
        [TWO, [tx(D(k=1), I(k=1, a="new", b=None), U(k=1, a=UNCHANGED, b=UNCHANGED))]],
    ),
    Scenario(
        "of several updates each column keeps its last known value",
        [
            TWO,
            [
                tx(U(k=1, a="one", b="one")),
                tx(U(k=1, a="two", b=UNCHANGED)),
                tx(U(k=1, a=UNCHANGED, b=UNCHANGED), U(k=2, a=UNCHANGED, b="x"), U(k=2, a="y", b=UNCHANGED)),
            ],
        ],
    ),
    Scenario(
        "an update that sets NULL and one that leaves the column out make NULL",
        [ONE, [tx(U(k=1, a=None, b=UNCHANGED), U(k=1, a=UNCHANGED, b="x"))]],
    ),
    Scenario(
        "a delete of an absent key is counted",
        [ONE, [tx(D(k=7), D(k=8), D(k=1))]],
    ),
    Scenario(
        "an update of an absent key inserts the row and is counted",
        [ONE, [tx(U(k=7, a="x", b="y"))]],
    ),
    Scenario(
        "a move from an absent key inserts the row and is counted",
        [ONE, [tx(move(7, 8, a="x", b="y"))]],
    ),
    Scenario(
        "an update that leaves out a value of an absent row pauses",
        [ONE, [tx(U(k=7, a="x", b=UNCHANGED))]],
        paused="divergence",
    ),
    Scenario(
        "a move that leaves out a value of an absent row pauses", [ONE, [tx(move(7, 8, **KEEP))]], paused="divergence"
    ),
    Scenario(
        "an update after a delete that leaves out a value pauses",
        [ONE, [tx(D(k=1), U(k=1, **KEEP))]],
        paused="divergence",
    ),
    Scenario("an insert that leaves out a value pauses", [ONE, [tx(I(k=2, a=UNCHANGED, b="x"))]], paused="divergence"),
    Scenario(
        "an unchanged key column is known from the old key",
        [ONE, [tx(U(old={"k": 1}, k=UNCHANGED, a="x", b=UNCHANGED))]],
    ),
    Scenario(
        "under FULL the old row supplies what is left out",
        [
            ONE,
            [
                tx(
                    U(old={"k": 1, "a": "a1", "b": "b1"}, full=True, k=1, a="x", b=UNCHANGED),
                    U(old={"k": 1, "a": "x", "b": "b1"}, full=True, k=2, a=UNCHANGED, b=UNCHANGED),
                )
            ],
        ],
        identity="f",
    ),
    Scenario(
        "a composite key moves when one part does",
        [
            [tx(I(x=1, y="p", a="1p"), I(x=1, y="q", a="1q"), I(x=2, y="p", a="2p"))],
            [tx(U(old={"x": 1, "y": "p"}, x=3, y="p", a=UNCHANGED), D(x=1, y="q"), U(x=2, y="p", a="new"))],
        ],
        columns=PAIR,
    ),
    Scenario(
        "text keys are compared as they are",
        [
            [
                tx(
                    *(
                        I(x=0, y=y, a=repr(y))
                        for y in ("", " ", "a", "A", "a ", "\u00e9", "e\u0301", "'", '"', "\\", "`", "null")
                    )
                )
            ],
            [tx(D(x=0, y=""), D(x=0, y="A"), U(x=0, y="\u00e9", a="precomposed"), D(x=0, y="\\"), D(x=0, y="'"))],
        ],
        columns=PAIR,
    ),
]

_DAY = (column("day", "date", key=True), column("at", "timestamptz", key=True), column("a"))
_EARLY, _LATE = "4714-11-24 00:00:00+00 BC", "infinity"
MISFIT_KEYS = Scenario(
    "keys that do not fit their column are told apart by their text",
    [
        [
            tx(
                *(
                    I(day=day, at=at, a=f"{day} {at}")
                    for day in ("2024-02-29", "infinity", "-infinity")
                    for at in (_EARLY, _LATE)
                )
            )
        ],
        [
            tx(
                U(day="infinity", at=_LATE, a=UNCHANGED),
                U(day="-infinity", at=_LATE, a="updated"),
                D(day="infinity", at=_EARLY),
                U(old={"day": "2024-02-29", "at": _EARLY}, day="infinity", at=_EARLY, a=UNCHANGED),
            )
        ],
    ],
    columns=_DAY,
)

TRUNCATED = [
    Scenario("a truncate empties the table", [TWO, [tx(T())]], counts={"truncates": 1, "rows_deleted": 2}),
    Scenario(
        "changes after a truncate apply and those before it do not",
        [
            TWO,
            [
                tx(U(k=1, a="x", b=UNCHANGED), I(k=3, a="x", b="y")),
                tx(I(k=4, a="x", b="y"), T(), I(k=5, a="5", b="5"), U(k=5, a="6", b=UNCHANGED)),
            ],
        ],
        counts={"rows_deleted": 2, "rows_written": 1},
    ),
    Scenario(
        "only the last of two truncates counts",
        [TWO, [tx(T(), I(k=3, a="x", b="y")), tx(T()), tx(I(k=1, a="n", b="n"))]],
    ),
    Scenario(
        "a row moved after a truncate and an insert is there",
        [TWO, [tx(T(), I(k=1, a="x", b="y"), move(1, 2, **KEEP))]],
    ),
    Scenario("a truncate of an empty table is no error", [[tx(T())], [tx(T())]]),
    Scenario(
        "an update of a truncated row that leaves out a value pauses",
        [TWO, [tx(T(), U(k=1, **KEEP))]],
        paused="divergence",
    ),
    Scenario(
        "a delete of a truncated row is counted",
        [TWO, [tx(T(), D(k=1), U(k=2, a="x", b="y"))]],
        counts={"delete_missing": 1, "update_missing": 1},
    ),
    Scenario(
        "a bag is emptied by a truncate",
        [[tx(I(a="x", n=1), I(a="x", n=1))], [tx(I(a="y", n=1), T(), I(a="z", n=2))]],
        columns=BAG,
    ),
    Scenario(
        "an insert-only table is emptied by a truncate",
        [[tx(I(a="x", n=1))], [tx(T(), I(a="z", n=2))]],
        columns=BAG,
        identity="n",
    ),
]


def _gone(**row: Any) -> Any:
    return D(True, **row)


def _changed(old: Row, **new: Any) -> Any:
    return U(old=old, full=True, **new)


_FLOATS = (column("f", "float8"), column("g", "float4[]"))
_MISFITS = (column("d", "date"), column("a"))

BAGS = [
    Scenario(
        "a delete removes exactly one of several equal rows",
        [[tx(*3 * [I(a="x", n=1)], I(a="y", n=1))], [tx(_gone(a="x", n=1))]],
        columns=BAG,
        counts={"rows_deleted": 1, "rows_written": 0},
    ),
    Scenario(
        "an update changes exactly one of several equal rows",
        [
            [tx(*3 * [I(a="x", n=1)])],
            [tx(_changed({"a": "x", "n": 1}, a="x", n=2)), tx(_changed({"a": "x", "n": 1}, a=UNCHANGED, n=3))],
        ],
        columns=BAG,
    ),
    Scenario(
        "rows with NULLs are equal too",
        [[tx(*3 * [I(a=None, n=None)], I(a="", n=None))], [tx(*2 * [_gone(a=None, n=None)])]],
        columns=BAG,
    ),
    Scenario(
        "a row that comes and goes in one batch leaves nothing",
        [[tx(I(a="x", n=1))], [tx(I(a="y", n=1), _gone(a="y", n=1), _gone(a="x", n=1), I(a="x", n=1))]],
        columns=BAG,
    ),
    Scenario(
        "many copies come at once",
        [[tx(*5 * [I(a="x", n=1)])], [tx(*4 * [I(a="x", n=1)], *3 * [I(a="z", n=None)])]],
        columns=BAG,
    ),
    Scenario(
        "deletes of rows that are not there are counted",
        [[tx(*2 * [I(a="x", n=1)])], [tx(*3 * [_gone(a="x", n=1)], _gone(a="q", n=1))]],
        columns=BAG,
    ),
    Scenario(
        "minus zero, zero and NaN are three values",
        [
            [tx(*(I(f=f, g=g) for f in ("0", "-0", "NaN", None) for g in ("{0,1}", "{-0,1}", "{NaN,1}", None)))],
            [
                tx(
                    _gone(f="-0", g="{0,1}"),
                    _gone(f="0", g="{-0,1}"),
                    _gone(f="NaN", g="{NaN,1}"),
                    _gone(f=None, g=None),
                )
            ],
        ],
        columns=_FLOATS,
        counts={"rows_deleted": 4, "delete_missing": 0},
    ),
    Scenario(
        "rows that differ in a misfit only are told apart",
        [
            [tx(*2 * [I(d="infinity", a="x")], I(d="-infinity", a="x"), I(d=None, a="x"))],
            [tx(_gone(d="infinity", a="x"), _gone(d="-infinity", a="x"))],
        ],
        columns=_MISFITS,
        counts={"rows_deleted": 2, "delete_missing": 0},
    ),
    Scenario(
        "a table without identity only grows",
        [[tx(I(a="x", n=1))], [tx(I(a="x", n=1), I(a="y", n=None))]],
        columns=BAG,
        identity="n",
        counts={"rows_written": 2},
    ),
    Scenario(
        "an update of a table without identity pauses it",
        [[tx(I(a="x", n=1))], [tx(U(a="x", n=2))]],
        columns=BAG,
        identity="n",
        paused="schema-change",
    ),
]

_BEFORE = [{"k": 1, "a": "copied", "b": "b1"}, {"k": 2, "a": "copied", "b": "b2"}]
COPIES = [
    Scenario("a copy is what the table holds", [[]], copy=_BEFORE, counts={"rows_written": 2}),
    Scenario("an empty copy makes an empty table", [[]], copy=[]),
    Scenario(
        "changes after a copy apply to its rows",
        [[tx(U(k=1, a="x", b=UNCHANGED), D(k=2), I(k=3, a="x", b="y"))]],
        copy=_BEFORE,
        counts={"rows_written": 4, "rows_deleted": 2, "delete_missing": 0},
    ),
    Scenario("a truncate after a copy empties it", [[tx(T(), I(k=3, a="x", b="y"))]], copy=_BEFORE),
    Scenario(
        "a bag is copied with its equal rows", [[tx(_gone(a="x", n=1))]], copy=3 * [{"a": "x", "n": 1}], columns=BAG
    ),
]

HOSTILE = Scenario(
    "names that need quoting are kept as they are",
    [
        [
            tx(
                I(
                    **{
                        "Select": 1,
                        "a.b": "1",
                        "`": "2",
                        "'": "3",
                        '"': "4",
                        " ": "5",
                        "é{x}": "6",
                        "ID": "7",
                        "id": "8",
                        "%s\\n": "9",
                    }
                )
            )
        ],
        [
            tx(
                U(
                    old={"Select": 1},
                    full=False,
                    **{
                        "Select": 2,
                        "a.b": UNCHANGED,
                        "`": UNCHANGED,
                        "'": "x",
                        '"': UNCHANGED,
                        " ": UNCHANGED,
                        "é{x}": "y",
                        "ID": UNCHANGED,
                        "id": "z",
                        "%s\\n": UNCHANGED,
                    },
                ),
            )
        ],
    ],
    columns=(
        column("Select", "int8", key=True),
        *(column(name) for name in ("a.b", "`", "'", '"', " ", "é{x}", "ID", "id", "%s\\n")),
    ),
)

SCENARIOS = [*KEYED, MISFIT_KEYS, *TRUNCATED, *BAGS, *COPIES, HOSTILE]
