import json

from penstock.landing.manifest import FileEntry


def test_an_entry_survives_json() -> None:
    entry = FileEntry("p/f.parquet", 16385, 2, 3, 4096, (1 << 63) - 1, None, ("id", 'we"ird'), updates=2, deletes=1)

    assert FileEntry.from_json(json.loads(json.dumps(entry.to_json()))) == entry
