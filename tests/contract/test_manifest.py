import json

from penstock.contract.manifest import ChangeCounts, FileEntry, microseconds, moment


def test_an_entry_survives_json() -> None:
    counts = ChangeCounts(updates=2, deletes=1, old_key=1)
    changes = FileEntry("p/f.parquet", 16385, 2, 3, 4096, (1 << 63) - 1, None, ("id", 'we"ird'), counts)
    copied = FileEntry("p/c.parquet", 1, 0, 3, 9, None, None, ("id",), ChangeCounts(inserts=3), typed=(("id", "int"),))

    for entry in (changes, copied):
        assert FileEntry.from_json(json.loads(json.dumps(entry.to_json()))) == entry


def test_counts_add_up_and_the_rows_are_those_of_the_four_kinds() -> None:
    total = ChangeCounts(1, 2, 3, 4, 5, 6, 7) + ChangeCounts(inserts=1, old_full=1)

    assert total == ChangeCounts(2, 2, 3, 4, 5, 6, 8)
    assert total.rows == 11


def test_a_time_and_its_microseconds_lead_to_each_other_before_1970_too() -> None:
    assert microseconds(moment(-1)) == -1
