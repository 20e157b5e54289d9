"""Generated streams: what a server could say in protocol 1, as messages."""

from hypothesis import strategies as st

from penstock.lsn import Lsn
from penstock.wire import messages as m

# Drawn from lists rather than letter by letter: a stream holds hundreds of them, and it is their places that matter.
NAMES = st.sampled_from(["a", "id", "Select", 'quo"te', "sp ace", "new\nline", "日本", "é", "x" * 63, "%s", "'"])
TEXTS = st.sampled_from(
    ["", "0", "NULL", "\\N", "ä", "日本語", "\U0001f600", "{1,NULL}", "u" * 255, "long" * 900, "\x00\t\n"]
).map(m.Text)
KNOWN = st.one_of(st.just(m.Missing.NULL), TEXTS)
CELLS = st.one_of(KNOWN, KNOWN, st.just(m.Missing.UNCHANGED))
INT64 = st.sampled_from([-(2**63), -1, 0, 700_000_000_000_000, 2**63 - 946_684_800_000_000, 2**63 - 1])
LSNS = st.sampled_from([0, 1, 0x16B374D848, 2**63 - 1]).map(Lsn)
XIDS = st.sampled_from([3, 2**31 - 1, 2**31 + 1, 2**32 - 1])
OIDS = st.sampled_from([1, 16384, 16385, 2**31, 2**32 - 1])
TYPMODS = st.sampled_from([-1, 0, 104])

COLUMNS = st.lists(
    st.builds(m.RelationColumn, NAMES, OIDS, TYPMODS, st.booleans()), max_size=10, unique_by=lambda column: column.name
).map(tuple)


def shapes(oid: int) -> st.SearchStrategy[m.Relation]:
    return st.builds(m.Relation, st.just(oid), NAMES, NAMES, st.sampled_from("dnfi"), COLUMNS)


def tuples(relation: m.Relation, cells: st.SearchStrategy[m.Cell]) -> st.SearchStrategy[tuple[m.Cell, ...]]:
    return st.tuples(*[cells] * len(relation.columns))


def old_images(relation: m.Relation) -> st.SearchStrategy[m.OldKey | m.OldRow]:
    cells = tuples(relation, KNOWN)
    return st.one_of(st.builds(m.OldKey, cells), st.builds(m.OldRow, cells))


def changes(relation: m.Relation) -> st.SearchStrategy[m.Change]:
    one, new, old = st.just(relation), tuples(relation, CELLS), old_images(relation)
    return st.one_of(
        st.builds(m.Insert, one, new),
        st.builds(m.Update, one, st.one_of(st.none(), old), new),
        st.builds(m.Delete, one, old),
    )


@st.composite
def transactions(draw: st.DrawFn, relations: dict[int, m.Relation], oids: list[int]) -> list[m.Message]:
    """Draw one transaction; `relations` is what the stream has said of them so far, and is kept up to date."""
    begin = m.Begin(draw(LSNS), draw(INT64), draw(XIDS))
    said: list[m.Message] = [begin]
    if draw(st.booleans()):
        said.append(m.Origin(draw(LSNS), draw(st.sampled_from(["", "north", "south"]))))
    for kind in draw(st.lists(st.sampled_from("CCCCCCTRRYM"), max_size=12)):
        oid = draw(st.sampled_from(oids))
        if kind == "R" or oid not in relations:
            again = oid in relations and draw(st.booleans())
            relations[oid] = relations[oid] if again else draw(shapes(oid))
            said.append(relations[oid])
        if kind == "C":
            said.append(draw(changes(relations[oid])))
        elif kind == "T":
            said.append(draw(st.builds(m.Truncate, _some(relations), st.booleans(), st.booleans())))
        elif kind == "Y":
            said.append(draw(st.builds(m.Type, OIDS, NAMES, NAMES)))
        elif kind == "M":
            said.append(draw(st.builds(m.LogicalMessage, st.just(True), LSNS, NAMES, st.binary(max_size=5))))
    return [*said, m.Commit(begin.final_lsn, draw(LSNS), begin.commit_time)]


def _some(relations: dict[int, m.Relation]) -> st.SearchStrategy[tuple[m.Relation, ...]]:
    return st.lists(st.sampled_from(list(relations.values())), max_size=4).map(tuple)


@st.composite
def streams(draw: st.DrawFn) -> list[m.Message]:
    """Draw some transactions with messages between them."""
    oids = draw(st.lists(OIDS, min_size=1, max_size=4, unique=True))
    relations: dict[int, m.Relation] = {}
    said: list[m.Message] = []
    for _ in range(draw(st.integers(1, 4))):
        between = st.builds(m.LogicalMessage, st.just(False), LSNS, NAMES, st.binary(max_size=5))
        said += draw(st.lists(between, max_size=1))
        said += draw(transactions(relations, oids))
    return said
