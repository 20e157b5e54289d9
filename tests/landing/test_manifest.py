import json

from penstock.landing.manifest import FileEntry, microseconds, moment


def test_an_entry_survives_json() -> None:
    entry = FileEntry("p/f.parquet", 16385, 2, 3, 4096, (1 << 63) - 1, None, ("id", 'we"ird'), updates=2, deletes=1)

    assert FileEntry.from_json(json.loads(json.dumps(entry.to_json()))) == entry


def test_an_entry_from_before_commit_times_were_noted_may_hold_any_time() -> None:
    entry = FileEntry(
        "p/f.parquet", 1, 1, 3, 9, 1, 2, ("id",), min_committed_at=1, max_committed_at=2, typed=(("id", "int"),)
    )
    written = {name: value for name, value in entry.to_json().items() if not name.endswith("_committed_at")}

    assert FileEntry.from_json(written).max_committed_at is None
    assert microseconds(moment(-1)) == -1
