"""The columnar decoder: its contract, what it carries from batch to batch, what it refuses and what it never says."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from itertools import count

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.contract.schema import landing_schema
from penstock.errors import ProtocolError
from penstock.lsn import Lsn
from penstock.shapes import ddl_message
from penstock.shapes.ddl_message import PREFIX, VERSION, DdlLog
from penstock.shapes.known_shape import FileBefore
from penstock.wire import messages as m
from penstock.wire import passes
from penstock.wire.arrays import LARGE, Gathered
from penstock.wire.columnar import ColumnarDecoder, warm_up
from penstock.wire.controls import Partition
from penstock.wire.pgoutput import RULES
from tests.wire.cases import CASES, FLAWS, NAMED, OUT_OF_PLACE, Case
from tests.wire.encoder import encode
from tests.wire.rows import HORIZON, batches, feed, rows_of, scalar_rows, unix_us

T = m.Relation(1, "s", "t", "d", (m.RelationColumn("id", 23, -1, True), m.RelationColumn("note", 25, -1, False)))
U = replace(T, oid=2, name="u")
P = replace(T, oid=3, name="t_1")
BEGIN = m.Begin(Lsn(0x100), 700_000_000_000_000, 900)
COMMIT = m.Commit(Lsn(0x100), Lsn(0x130), 700_000_000_000_000)


def insert(relation: m.Relation, *texts: str) -> m.Insert:
    return m.Insert(relation, tuple(map(m.Text, texts)))


def encoded(messages: Sequence[m.Message]) -> list[bytes]:
    return [encode(message) for message in messages]


def refusal(messages: Sequence[bytes]) -> ProtocolError:
    with pytest.raises(ProtocolError) as refused:
        feed(batches(messages))
    return refused.value


# --- the contract ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [[], ["id", "note"], [f"c{number}" for number in range(1600)]])
def test_a_block_has_the_schema_of_the_landing_contract(names: list[str]) -> None:
    relation = replace(T, columns=tuple(m.RelationColumn(name, 25, -1, False) for name in names))

    blocks, _ = feed(batches(encoded([BEGIN, relation, insert(relation, *names), COMMIT])))

    assert blocks[0].batch.schema.equals(landing_schema(names))


def test_a_block_reads_back_from_parquet_as_it_was() -> None:
    old = m.OldRow((m.Text("1"), m.Missing.NULL))
    new = (m.Text(""), m.Missing.UNCHANGED)
    blocks, _ = feed(batches(encoded([BEGIN, T, m.Update(T, old, new), m.Truncate((T,), False, False), COMMIT])))
    file = BytesIO()

    pq.write_table(pa.Table.from_batches([blocks[0].batch]), file)

    read = pq.read_table(file)
    assert read.schema.equals(blocks[0].batch.schema)
    assert read.to_pylist() == blocks[0].batch.to_pylist()


def test_blocks_come_in_the_order_of_their_first_rows_and_number_their_rows_through() -> None:
    stream = [BEGIN, U, T, insert(T, "1", "a"), insert(U, "2", "b"), insert(T, "3", "c"), COMMIT]

    blocks, _ = feed(batches(encoded(stream)))

    assert [(block.relation.name, block.batch["ordinal"].to_pylist()) for block in blocks] == [
        ("t", [0, 2]),
        ("u", [1]),
    ]


def test_a_large_row_that_is_alone_is_a_view_of_its_message() -> None:
    large = "x" * LARGE
    stream = encoded([BEGIN, T, insert(T, "1", "a"), insert(T, "2", large), insert(T, "3", "c"), COMMIT])

    parts = batches(stream, [3, 4])
    blocks, _ = feed(parts)

    assert [block.batch["ordinal"].to_pylist() for block in blocks] == [[0], [1], [2]]
    note = blocks[1].batch["new"].field("note")
    assert note.to_pylist() == [large]
    start, whole = note.buffers()[2].address, parts[1].buffers()[2]
    assert whole.address < start < whole.address + whole.size


def test_a_shape_says_of_what_its_columns_are_made_where_the_stream_names_that() -> None:
    own = replace(T, columns=(T.columns[0], replace(T.columns[1], type_oid=0x4001)))
    named = replace(own, columns=(own.columns[0], replace(own.columns[1], base="citext")))
    stream = [BEGIN, m.Type(0x4001, "public", "citext"), own, insert(own, "1", "a"), COMMIT]

    blocks, _ = feed(batches(encoded(stream), [1, 2]))

    assert [block.relation for block in blocks] == [named]


def test_a_shape_that_comes_back_starts_a_new_block() -> None:
    wide = replace(T, columns=(*T.columns, m.RelationColumn("more", 25, -1, False)))
    stream = [BEGIN]
    for shape in (T, wide, T, T):
        stream += [shape, insert(shape, *("x" for _ in shape.columns))]

    blocks, _ = feed(batches(encoded([*stream, COMMIT])))

    assert [block.relation for block in blocks] == [T, wide, T]
    assert [block.counts.inserts for block in blocks] == [1, 1, 2]


def test_nothing_gives_nothing() -> None:
    blocks, totals = feed([pa.array([], pa.binary())])

    assert blocks == []
    assert (totals.messages, totals.transactions, totals.changes) == (0, 0, 0)


# --- from batch to batch --------------------------------------------------------------------------------------


def test_a_transaction_over_many_batches_keeps_lsn_time_xid_and_origin() -> None:
    stream = [BEGIN, m.Origin(Lsn(1), "north"), T, insert(T, "1", "a"), T, insert(T, "2", "b"), COMMIT]

    blocks, _ = feed(batches(encoded(stream), range(len(stream))))

    facts = [(r.commit_lsn, r.committed_at, r.xid, r.origin, r.ordinal) for r in rows_of(blocks)]
    common = (0x100, unix_us(BEGIN.commit_time), (5 << 32) + 900, "north")
    assert facts == [(*common, 0), (*common, 1)]


@pytest.mark.parametrize("cuts", [(), range(12)], ids=["one batch", "a batch each"])
def test_a_partition_is_recognised_by_the_change_of_its_root_that_follows_its_relation_message(
    cuts: Sequence[int],
) -> None:
    truncated = [T, U, m.Truncate((T, U), False, False)]
    stream = encoded(
        [BEGIN, *truncated, T, P, insert(T, "1", "a"), insert(T, "2", "b"), U, insert(U, "3", "c"), COMMIT]
    )

    _, totals = feed(batches(stream, cuts))

    assert totals.partitions == (Partition(3, 1, "s.t_1"),)


def test_the_columns_that_are_null_in_an_old_row_are_named() -> None:
    key, other = m.OldKey((m.Text("1"), m.Missing.NULL)), m.OldKey((m.Missing.NULL, m.Text("x")))

    (ours,), _ = feed(batches(encoded([BEGIN, T, insert(T, "1", "a"), m.Delete(T, key), COMMIT])))
    (strange,), _ = feed(batches(encoded([BEGIN, T, m.Delete(T, key), m.Delete(T, other), COMMIT])))
    (none,), _ = feed(batches(encoded([BEGIN, T, m.Insert(T, (m.Text("1"), m.Missing.NULL)), COMMIT])))

    assert (ours.old_nulls, strange.old_nulls, none.old_nulls) == ({"note"}, {"id", "note"}, set())


def test_a_skipped_transaction_stays_skipped_over_many_batches_and_the_next_one_is_not() -> None:
    skipped = [BEGIN, m.Origin(Lsn(1), "north"), T, insert(T, "1", "a"), m.Truncate((T, T), False, False), COMMIT]
    stream = encoded([*skipped, BEGIN, insert(T, "2", "b"), COMMIT])

    blocks, totals = feed(batches(stream, range(len(stream))), skip_origins=frozenset({"north"}))

    assert [row.new for row in rows_of(blocks)] == [{"id": "2", "note": "b"}]
    assert (totals.changes, totals.transactions) == (1, 2)


def test_a_slice_of_a_larger_array_is_decoded_as_it_is() -> None:
    whole = pa.array([b"rubbish", *encoded([BEGIN, T, insert(T, "1", "a"), COMMIT]), b"rubbish"], pa.binary())

    blocks, _ = feed([whole[1:3], whole[3:5]])

    assert [row.new for row in rows_of(blocks)] == [{"id": "1", "note": "a"}]


def test_a_value_larger_than_a_batch_comes_through() -> None:
    large = "ä" * (20 << 20)

    blocks, _ = feed(batches(encoded([BEGIN, T, insert(T, "1", large), COMMIT])))

    assert blocks[0].batch["new"].field(1)[0].as_py() == large


def test_columns_that_overflow_their_offsets_cannot_be_made() -> None:
    with pytest.raises(AssertionError):
        Gathered.allocate(1, np.array([2**30, 2**30]), 0)


# --- refusals -------------------------------------------------------------------------------------------------


BATCH_CASES = [case for case in CASES if case.for_batches]
each_case = pytest.mark.parametrize("case", BATCH_CASES, ids=lambda case: case.name)


def refused_last(within: Sequence[m.Message], data: bytes) -> ProtocolError:
    """Feed `data` after `within`, at once and in a batch of its own; return the error of both, which names its number."""
    messages = [*encoded(within), data]
    errors = []
    for cuts in ([], [len(within)]):
        with pytest.raises(ProtocolError) as refused:
            feed(batches(messages, cuts))
        errors.append(refused.value)
    assert errors[0].message == errors[1].message
    assert f"message number {len(messages)} of the peek" in errors[0].message
    return errors[0]


@each_case
def test_a_message_of_the_protocol_is_taken(case: Case) -> None:
    messages = [*encoded(case.within), case.data]
    decoder = ColumnarDecoder(xid_horizon=HORIZON)

    rows = rows_of(block for array in batches(messages) for block in decoder.feed(array))

    assert rows == scalar_rows(messages)


@each_case
def test_a_message_cut_at_any_byte_is_refused(case: Case) -> None:
    for length in range(1, len(case.data)):
        assert refused_last(case.within, case.data[:length]).slug == "protocol-truncated"


@each_case
def test_a_byte_too_many_is_refused(case: Case) -> None:
    assert refused_last(case.within, case.data + b"\0").slug == "protocol-truncated"


@pytest.mark.parametrize(("name", "offset", "byte", "words"), [flaw for flaw in FLAWS if NAMED[flaw[0]].for_batches])
def test_a_flag_or_kind_that_is_not_in_the_protocol_is_refused(name: str, offset: int, byte: bytes, words: str) -> None:
    case = NAMED[name]
    ends = encode(m.Commit(Lsn(0x16B374D848), Lsn(0), 0))

    refused = refusal([*encoded(case.within), case.flawed(offset, byte), ends])

    assert refused.slug == "protocol-unknown"
    assert words in refused.message or 'UTF-8 text in column "naïve"' in refused.message


@pytest.mark.parametrize("name", OUT_OF_PLACE)
def test_a_message_at_a_wrong_place_is_refused(name: str) -> None:
    within, message = OUT_OF_PLACE[name]

    for_batches = not any(encode(each)[:1] in b"SEcAbPKrp" for each in (*within, message))

    refused = refused_last(within, encode(message)) if for_batches else refusal(encoded([*within, message]))

    assert refused.slug == "protocol-sequence" if for_batches else "two_phase=false" in refused.message


def test_a_position_beyond_what_the_landing_column_holds_is_refused() -> None:
    largest = replace(BEGIN, final_lsn=Lsn(2**63 - 1))
    blocks, _ = feed(batches(encoded([largest, T, insert(T, "1", "a"), replace(COMMIT, commit_lsn=Lsn(2**63 - 1))])))
    assert [row.commit_lsn for row in rows_of(blocks)] == [2**63 - 1]

    refused = refused_last([], encode(replace(BEGIN, final_lsn=Lsn(2**63))))

    assert refused.slug == "protocol-unknown"


@pytest.mark.parametrize("case", [case for case in CASES if case.hex[1] in "SEcAbPKrp"], ids=lambda case: case.name)
def test_streaming_and_two_phase_messages_are_refused_wherever_they_come(case: Case) -> None:
    for before in ([], encoded([BEGIN, T])):
        refused = refusal([*before, case.data])
        assert f"message number {len(before) + 1} of the peek" in refused.message
        assert "two_phase=false" in refused.message


def test_binary_values_are_refused() -> None:
    refused = refusal(encoded([BEGIN, T, m.Insert(T, (m.Binary(b"1"), m.Binary(b"2")))]))

    assert refused.slug == "protocol-unknown"
    assert "message number 3 of the peek" in refused.message


@pytest.mark.parametrize("tag", sorted(set(range(256)) - set(map(ord, RULES))))
def test_an_unknown_message_is_refused_within_and_between_transactions(tag: int) -> None:
    for before in ([], encoded([BEGIN, T])):
        assert refusal([*before, bytes([tag]) + bytes(40)]).slug == "protocol-unknown"


def test_the_number_of_a_refused_message_counts_those_of_earlier_batches() -> None:
    stream = encoded([BEGIN, T, insert(T, "1", "a"), insert(T, "2", "b")])
    stream[3] += b"\0"

    with pytest.raises(ProtocolError, match=r"message number 4 of the peek, message 'I' of 21 bytes: expected its end"):
        feed(batches(stream, [1, 2]))


def test_a_transaction_left_open_at_the_end_is_refused() -> None:
    decoder = ColumnarDecoder(xid_horizon=HORIZON)
    decoder.feed(pa.array(encoded([BEGIN, T]), pa.binary()))

    with pytest.raises(ProtocolError, match=r"COMMIT of the transaction at 0/100 ") as refused:
        decoder.finish()

    assert refused.value.slug == "protocol-sequence"


@pytest.mark.parametrize("nothing", [None, b""])
def test_null_and_empty_messages_are_refused(nothing: bytes | None) -> None:
    with pytest.raises(ProtocolError, match="expected messages, got NULL or no bytes instead"):
        feed([pa.array([encode(BEGIN), nothing], pa.binary())])


def test_another_type_of_array_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="got large_binary instead"):
        feed([pa.array([b"B"], pa.large_binary())])


NOT_UTF8 = [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"secret\xfe"]


@pytest.mark.parametrize("value", NOT_UTF8)
@pytest.mark.parametrize("where", ["new", "old"])
def test_text_that_is_not_utf8_is_refused_by_column_and_never_shown(value: bytes, where: str) -> None:
    blank = m.Text("~" * len(value))
    good = (m.Text("1"), blank)
    change = m.Insert(T, good) if where == "new" else m.Delete(T, m.OldRow(good))
    data = encode(change).replace(b"~" * len(value), value)

    refused = refusal([*encoded([BEGIN, T]), data, encode(COMMIT)])

    assert refused.slug == "protocol-unknown"
    assert 'UTF-8 text in column "note" of "s"."t"' in refused.message
    assert refused.__cause__ is None
    assert refused.__context__ is None


def test_a_character_cut_between_two_values_is_refused_though_together_they_would_be_whole() -> None:
    halves = [encode(insert(T, "1", "~")).replace(b"~", half) for half in (b"\xc3", b"\xa4")]

    refused = refusal([*encoded([BEGIN, T]), *halves, encode(COMMIT)])

    assert "UTF-8" in refused.message


def test_a_refusal_of_the_compiled_pass_never_shows_a_value() -> None:
    refused = refusal([*encoded([BEGIN, T]), encode(insert(T, "1", "secret")) + b"secret"])

    assert "secret" not in f"{refused!r}"
    assert refused.__context__ is None


# --- transaction ids and times --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("xid", "horizon", "full"),
    [
        (999, 1000, 999),
        (3, (7 << 32) + 1000, (7 << 32) + 3),
        (2**32 - 1, (7 << 32) + 3, (7 << 32) - 1),  # begun before the last wrap
        (2**32 - 1, 1 << 32, (1 << 32) - 1),
        (2**32 - 5, (7 << 32) + 2**31 - 6, (7 << 32) - 5),
        (2**31 + 7, (7 << 32) + 2**31 + 7, (7 << 32) + 2**31 + 7),
        (1005, 1000, 1005),  # begun just after the horizon was read
        (5, (8 << 32) - 1, (8 << 32) + 5),  # the same, over a wrap
    ],
)
def test_a_transaction_id_is_extended_to_the_one_nearest_the_horizon(xid: int, horizon: int, full: int) -> None:
    stream = [replace(BEGIN, xid=xid), T, insert(T, "1", "a"), COMMIT]

    blocks, _ = feed(batches(encoded(stream)), horizon)

    assert [row.xid for row in rows_of(blocks)] == [full]


def test_a_transaction_id_before_the_first_one_is_refused() -> None:
    with pytest.raises(ProtocolError, match=r"within 2\^31 of the snapshot's xmax 1000, got 4294967295") as refused:
        feed(batches(encoded([replace(BEGIN, xid=2**32 - 1), COMMIT])), 1000)

    assert refused.value.slug == "protocol-sequence"


@pytest.mark.parametrize("time", [-(2**63), 2**63 - 1, 2**63 - 946_684_800_000_000])
def test_a_time_that_does_not_fit_becomes_null(time: int) -> None:
    stream = [replace(BEGIN, commit_time=time), T, insert(T, "1", "a"), COMMIT]

    blocks, _ = feed(batches(encoded(stream)))

    assert blocks[0].batch["committed_at"].null_count == 1


# --- the compiled passes --------------------------------------------------------------------------------------


def test_every_kind_of_input_runs_the_one_version_that_warm_up_compiled() -> None:
    warm_up()
    stream = encoded([BEGIN, T, insert(T, "1", "a"), COMMIT])
    writable = pa.array(stream, pa.binary())
    reader = pa.ipc.open_stream(_ipc(writable))

    feed([writable])
    feed([writable[:2], writable[2:]])
    feed([reader.read_next_batch().column(0)])

    assert [len(each.signatures) for each in (passes.scan, passes.group, passes.gather)] == [1, 1, 1]  # type: ignore[attr-defined]


def _ipc(array: pa.Array) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"data": array})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def status(code: str) -> int:
    return subprocess.run(
        [sys.executable, "-c", code], check=False, env={"PYTHONPATH": "plugins"}, timeout=60
    ).returncode


def test_importing_the_decoder_does_not_import_numba() -> None:
    assert status("import sys, penstock.wire.columnar; sys.exit('numba' in sys.modules)") == 0


def test_where_no_cache_folder_is_writable_the_passes_compile_without_one() -> None:
    code = (
        "import numba.core.caching as caching; caching.CacheImpl._locator_classes = []\n"
        "from penstock.wire import passes\n"
        "from numba.core.caching import NullCache\n"
        "assert isinstance(passes.scan._cache, NullCache)"
    )

    assert status(code) == 0


# --- what the source's event trigger tells ---------------------------------------------------------------------


def ddl_event(columns: dict[int, tuple[str, int, int]], dropped: dict[int, int]) -> m.LogicalMessage:
    said = {"version": VERSION, "oid": 1, "trigger": "1.2 3.4", "xid": "900", "count": len(columns) + len(dropped)}
    said |= {"columns": [[n, *column, 0] for n, column in columns.items()], "dropped": [*map(list, dropped.items())]}
    return message({**said, "file": 0, "written": [0, 0], "plain": False, "unlogged": False})


PLACES = count(1)


def message(said: object) -> m.LogicalMessage:
    """Return a message as the event trigger writes it, each further on than the one before; that it is proved is the server's to say."""
    return m.LogicalMessage(True, Lsn(0x90), PREFIX, content(said, next(PLACES)))


def content(said: object, place: int) -> bytes:
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    return bytes(32) + place.to_bytes(8) + text


def test_the_same_names_begin_another_split_where_they_are_told_to_be_other_columns() -> None:
    first, second = {1: ("id", 23, -1), 2: ("note", 25, -1)}, {1: ("id", 23, -1), 3: ("note", 25, -1)}
    stream = [
        BEGIN,
        T,
        insert(T, "1", "a"),
        ddl_event(first, {}),
        T,
        insert(T, "2", "b"),
        ddl_event(first, {}),
        T,
        insert(T, "3", "c"),
    ]
    stream += [ddl_event({1: ("id", 23, -1)}, {2: 900}), ddl_event(second, {2: 900}), T, insert(T, "4", "d"), COMMIT]

    for cuts in ([], range(1, len(stream))):
        ddl = DdlLog()
        blocks, totals = feed(batches(encoded(stream), cuts), ddl=ddl)
        ids = {
            split: [
                row
                for block in blocks
                if block.split == split
                for row in block.batch.column("new").field("id").to_pylist()
            ]
            for split in range(3)
        }
        assert ids == {0: ["1"], 1: ["2", "3"], 2: ["4"]}
        assert totals.after == {(T, 0): {0}, (T, 1): {1, 2}, (T, 2): {4}}
        assert [list(each.columns) for each in ddl.shapes[1]] == [[1, 2], [1, 2], [1], [1, 3]]


def test_a_file_that_is_told_before_a_rewrite_goes_with_the_next_state_of_its_table() -> None:
    before = {"version": VERSION, "trigger": "1.2 3.4", "xid": "900", "oid": 1, "rewrites": 16400, "empty": False}
    stream = [
        BEGIN,
        ddl_event({1: ("id", 23, -1)}, {}),
        message(before),
        ddl_event({1: ("id", 23, -1)}, {}),
        ddl_event({1: ("id", 23, -1)}, {}),
        COMMIT,
    ]
    ddl = DdlLog()
    feed(batches(encoded(stream)), ddl=ddl)

    assert [each.rewrote for each in ddl.shapes[1]] == [
        None,
        FileBefore(1, "1.2 3.4", 900, 16400, empty=False),
        None,
    ]


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b"null", b'{"version": 1}', b'{"version": 2}', b"\xff", b"[" * 9999]
)
def test_a_message_of_the_trigger_that_says_nothing_is_counted(text: bytes) -> None:
    stream = [BEGIN, ddl_event({1: ("id", 23, -1)}, {}), message(text), ddl_event({}, {1: 7}), COMMIT]
    ddl = DdlLog()
    feed(batches(encoded(stream)), ddl=ddl)

    assert ddl.gaps == 1
    assert [each.gaps for each in ddl.shapes[1]] == [0, 1]


def test_what_is_told_is_bounded_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ddl_message, "KEPT_BYTES", 1000)
    stream = [BEGIN, *(ddl_event({1: ("id", 23, -1)}, {}) for _ in range(100)), COMMIT]

    ddl = DdlLog()
    feed(batches(encoded(stream)), ddl=ddl)

    assert len(ddl.shapes[1]) + ddl.gaps == 100
    assert len(ddl.shapes[1]) < 10


def test_a_message_that_is_sent_again_in_its_transaction_counts_once() -> None:
    one, other = ddl_event({1: ("id", 23, -1)}, {}), ddl_event({}, {1: 7})
    ddl = DdlLog()
    feed(batches(encoded([BEGIN, one, one, other, one, other, COMMIT])), ddl=ddl)

    assert [list(each.columns) for each in ddl.shapes[1]] == [[1], []]
    assert ddl.gaps == 0


def test_who_does_not_hear_the_trigger_reads_none_of_its_messages() -> None:
    lost = m.LogicalMessage(False, Lsn(0x90), PREFIX, content(b"no JSON", 1))
    ddl = DdlLog()
    feed(batches(encoded([lost])), ddl=ddl)
    assert (ddl.shapes, ddl.gaps) == ({}, 0)

    _, totals = feed(batches(encoded([BEGIN, ddl_event({}, {1: 7}), message(b"no JSON"), COMMIT])))
    assert (totals.messages, totals.changes) == (4, 0)
