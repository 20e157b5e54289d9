"""An interval of a changelog by the engine alone: what is written, what is taken out, and what is left unread."""

import itertools
import struct
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.contract.manifest import FileRef
from penstock.contract.schema import NO_COLUMNS_FIELD, landing_schema
from penstock.engine import changelog, vectors
from penstock.engine.changelog import FillOrder, ImageField
from penstock.engine.failure import EngineFailure
from penstock.engine.files import Files
from penstock.engine.order import Layout, LayoutField, NewFile, Resources, TargetFile
from penstock.lake.changelog import MissingTransaction, changelog_columns
from penstock.lake.columns import LakeColumn

DAY = 86_400_000_000
NOON = DAY // 2
FIELDS = (
    ("id", "int"),
    ("Id", "string"),
    ("it's `odd`.x", "date"),
    ("tags", "array<int>"),
    ("pairs", "map<string,string>"),
)


def inner(lake_type: str) -> int:
    return 2 if lake_type.startswith("map") else 1 if lake_type.startswith("array") else 0


def moment(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def order_of(folder: Path, *landed: FileRef, fields: Sequence[tuple[str, str]] = FIELDS, **changes: Any) -> FillOrder:
    """Order the interval of the first day of 1970 from landed files."""
    columns = changelog_columns([LakeColumn(*field) for field in fields])
    numbers = itertools.count(1)
    ids = {each.name: tuple(next(numbers) for _ in range(1 + inner(each.type))) for each in columns}
    images = [[tuple(next(numbers) for _ in range(1 + inner(type_))) for _, type_ in fields] for _ in range(2)]
    described = tuple(ImageField(*field, each) for field, each in zip(fields, zip(*images, strict=True), strict=True))
    known: dict[str, Any] = {
        "missing": (),
        "target": (),
        "layout": Layout(str(folder / "lake")),
        "resources": Resources(),
    }
    known |= {"start": 0, "end": DAY}
    return FillOrder(ids, described, landed, **{**known, **changes})


def change(at: int | None, lsn: int, op: str = "I", **images: Any) -> dict[str, Any]:
    row = {"commit_lsn": lsn, "ordinal": 1, "op": op, "committed_at": at, "xid": 7, "origin": None}
    return {**row, "new": None, "old": None, "old_kind": None, "unchanged": None, **images}


def landed(folder: Path, name: str, columns: Sequence[str], rows: Sequence[dict[str, Any]], **options: Any) -> FileRef:
    path = folder / f"{name}.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), schema=landing_schema(columns)), path, **options)
    return FileRef(str(path), len(rows), path.stat().st_size, tuple(columns), era=3)


def rows_of(written: Sequence[NewFile]) -> list[dict[str, Any]]:
    tables = [pq.read_table(file.path).to_pylist() for file in written]
    return sorted((row for rows in tables for row in rows), key=lambda row: (row["commit_lsn"], row["ordinal"]))


def test_an_interval_has_its_changes_typed_and_their_misfits_as_text(tmp_path: Path) -> None:
    fields = FIELDS[:1] + FIELDS[2:]
    names = [name for name, _ in fields]
    fits = dict(zip(names, ("7", "2024-02-29", "{1,NULL}", '"a"=>NULL'), strict=True))
    strange = dict(zip(names, ("12.0", "infinity", "{{1}}", "x"), strict=True))
    file = landed(
        tmp_path,
        "a",
        names,
        [
            change(-1, 1, new=fits),
            change(0, 2, new=fits),
            change(NOON, 3, "U", new=strange, old=fits, old_kind="K", unchanged=["tags"]),
            change(DAY - 1, 4, "D", old=strange, old_kind="O"),
            change(DAY, 5, new=fits),
            change(None, 6, new=fits),
        ],
    )

    first, second, third = rows_of(changelog.write(order_of(tmp_path, file, fields=fields), Files()))

    typed = {"id": 7, "it's `odd`.x": datetime(2024, 2, 29).date(), "tags": [1, None], "pairs": [("a", None)]}
    assert first == {
        "era": 3,
        "commit_lsn": 2,
        "ordinal": 1,
        "op": "I",
        "committed_at": datetime(1970, 1, 1, tzinfo=UTC),
        "xid": 7,
        "origin": None,
        "new": typed,
        "old": None,
        "old_kind": None,
        "unknown": None,
        "new_misfits": None,
        "old_misfits": None,
    }
    assert (second["new"], second["old"], second["unknown"]) == (dict.fromkeys(names), typed, ["tags"])
    assert (dict(second["new_misfits"]), second["old_misfits"], second["old_kind"]) == (strange, None, "K")
    assert (third["new"], third["new_misfits"], dict(third["old_misfits"])) == (None, None, strange)


def test_only_what_was_sent_as_real_is_rounded_in_a_field_of_double_precision(tmp_path: Path) -> None:
    names = ["single", "double"]
    file = landed(tmp_path, "a", names, [change(1, 1, new=dict.fromkeys(names, "0.1"))])
    order = order_of(tmp_path, replace(file, reals=("single",)), fields=[(name, "double") for name in names])

    (row,) = rows_of(changelog.write(order, Files()))

    assert row["new"] == {"single": struct.unpack("f", struct.pack("f", 0.1))[0], "double": 0.1}


def test_fields_that_a_file_lacks_are_null_and_no_misfits(tmp_path: Path) -> None:
    some = landed(tmp_path, "a", ["tags", "id"], [change(1, 1, new={"id": "1", "tags": "{}"})])
    none = landed(tmp_path, "b", [], [change(2, 2, new={NO_COLUMNS_FIELD: None}), change(3, 3, "T")])

    first, second, third = rows_of(
        changelog.write(order_of(tmp_path, some, none, fields=FIELDS[:1] + FIELDS[2:]), Files())
    )

    assert (first["new"]["id"], first["new"]["tags"], first["new"]["pairs"]) == (1, [], None)
    assert (set(second["new"].values()), second["new_misfits"], third["new"]) == ({None}, None, None)


def test_names_that_differ_in_case_only_keep_their_values_under_their_own_ids(tmp_path: Path) -> None:
    file = landed(tmp_path, "a", ["Id", "id"], [change(1, 1, new={"id": "1", "Id": "one"})])
    order = order_of(tmp_path, file)

    (written,) = changelog.write(order, Files())

    image = pq.read_schema(written.path).field("new").type
    values = pq.read_table(written.path)["new"].to_pylist()[0]
    by_id = {int(field.metadata[b"PARQUET:field_id"]): values[field.name] for field in image}
    assert [by_id[field.ids[0][0]] for field in order.fields] == [1, "one", None, None, None]


def test_a_folder_that_looks_like_a_hive_partition_adds_no_column(tmp_path: Path) -> None:
    folder = tmp_path / "op=x" / "xid=9"
    folder.mkdir(parents=True)

    (row,) = rows_of(
        changelog.write(order_of(folder, landed(folder, "a", ["id"], [change(1, 1)]), fields=FIELDS[:1]), Files())
    )

    assert (row["op"], row["xid"]) == ("I", 7)


@pytest.mark.slow
def test_a_table_of_500_columns_has_a_changelog(tmp_path: Path) -> None:
    fields = [(f"d{n}", "date") for n in range(500)]
    image = {name: "2024-02-29" for name, _ in fields} | {"d499": "infinity"}
    file = landed(tmp_path, "a", [name for name, _ in fields], [change(1, 1, "U", new=image, old=image, old_kind="O")])

    (row,) = rows_of(changelog.write(order_of(tmp_path, file, fields=fields), Files()))

    assert (row["new"]["d498"], row["new"]["d499"]) == (datetime(2024, 2, 29).date(), None)
    assert row["new_misfits"] == row["old_misfits"] == [("d499", "infinity")]


def test_a_missing_transaction_has_a_row_of_its_own(tmp_path: Path) -> None:
    missing = (MissingTransaction(2, 40, None, moment(NOON)), MissingTransaction(2, 41, 9, moment(NOON + 1)))

    rows = rows_of(changelog.write(order_of(tmp_path, missing=missing, fields=FIELDS[:1]), Files()))

    assert [(row["era"], row["commit_lsn"], row["op"], row["xid"], row["new"]) for row in rows] == [
        (2, 40, "S", None, None),
        (2, 41, "S", 9, None),
    ]


def test_rows_lie_by_day_in_files_of_their_own_and_in_commit_order(tmp_path: Path) -> None:
    rows = [change(at, lsn, new={"id": str(lsn)}) for lsn, at in ((5, DAY), (3, DAY + 1), (4, 1), (2, 2))]
    file = landed(tmp_path, "a", ["id"], rows)
    order = order_of(tmp_path, file, fields=FIELDS[:1], end=2 * DAY)
    at, lsn = list(order.ids).index("committed_at"), list(order.ids).index("commit_lsn")
    fields = {"partition": (LayoutField(at, "day"),), "sort": (LayoutField(lsn, "identity"),)}
    order = replace(order, layout=replace(order.layout, **fields))

    written = changelog.write(order, Files())

    found = {file.partition: pq.read_table(file.path)["commit_lsn"].to_pylist() for file in written}
    assert found == {(0,): [2, 4], (1,): [3, 5]}


def test_parts_of_an_order_write_together_what_the_order_writes(tmp_path: Path) -> None:
    files = [landed(tmp_path, str(n), ["id"], [change(n, n, new={"id": str(n)})]) for n in range(5)]
    order = order_of(tmp_path, *files, fields=FIELDS[:1], missing=(MissingTransaction(3, 9, None, moment(NOON)),))

    parts = order.parts(2 * files[0].bytes)

    together = rows_of([file for part in parts for file in changelog.write(part, Files())])
    assert len(parts) == 4
    assert together == rows_of(changelog.write(order, Files()))


def test_row_groups_of_other_times_are_not_read(tmp_path: Path) -> None:
    rows = [change(at * NOON, at, new={"id": str(at)}) for at in range(-4, 8) for _ in range(500)]
    file = landed(tmp_path, "a", ["id"], rows, row_group_size=1000, compression="none")
    path = Path(file.uri)
    groups = pq.ParquetFile(path).metadata
    content = bytearray(path.read_bytes())
    for number in (0, 1, 3, 4, 5):
        chunk = groups.row_group(number).column(0)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)

    found = rows_of(changelog.write(order_of(tmp_path, file, fields=FIELDS[:1]), Files()))

    assert {row["commit_lsn"] for row in found} == {0, 1}
    assert len(found) == 1000


def test_rows_of_the_interval_are_taken_out_of_files_that_hold_others_too(tmp_path: Path) -> None:
    rows = [change(at, at + 10, new={"id": "1"}) for at in (-1, 0, 5, DAY - 1, DAY)]
    whole = order_of(tmp_path, landed(tmp_path, "a", ["id"], rows), fields=FIELDS[:1], start=-DAY, end=2 * DAY)
    (mixed,) = changelog.write(whole, Files())
    first = replace(whole, target=(TargetFile(mixed.path, mixed.rows),), start=5, end=6)

    (vector,) = changelog.remove(first, Files()).vectors
    again = replace(first, target=(TargetFile(mixed.path, mixed.rows, vector.vector),), start=0, end=DAY)
    answer = changelog.remove(again, Files())

    assert answer.counts == {"rows_deleted": 2}
    assert list(vectors.read_vector(Files().lake, answer.vectors[0].vector)) == [1, 2, 3]
    assert changelog.remove(replace(again, start=7, end=8), Files()).vectors == ()


def test_a_damaged_landing_file_is_named_without_its_values(tmp_path: Path) -> None:
    file = landed(tmp_path, "a", ["id"], [change(1, 1, new={"id": "secret"})])
    Path(file.uri).write_bytes(b"PAR1 secret")

    with pytest.raises(EngineFailure) as caught:
        changelog.write(order_of(tmp_path, file, fields=FIELDS[:1]), Files())

    assert (caught.value.file, caught.value.unreadable) == (file.uri, True)
    assert "secret" not in str(caught.value)
