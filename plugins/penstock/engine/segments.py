"""A batch in which a table's key changes, cut where it does: what comes before is matched by the old key, what follows by the new one.

A landing file has one key, and files of two keys may take turns within one transaction: so the cuts are places in the
stream, and a segment is the part of its files that lies between two of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.contract.manifest import FileRef
from penstock.engine import duck
from penstock.engine.changes import PLACE, PLACE_BITS
from penstock.engine.files import Files
from penstock.engine.order import Resources

Key = tuple[str, ...] | None
"""The columns by which changes find their rows, None for the table's own key; none of them where whole rows do."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Say by which key the changes of some files are matched, from one place of the stream up to another.

    `files` are numbers in the batch. Without `since` the segment begins where the batch does; without `until` it ends there.
    """

    key: Key
    files: tuple[int, ...]
    since: int | None = None
    until: int | None = None


def before(segments: Sequence[Segment], place: int) -> tuple[Segment, ...]:
    """Return the parts of segments that lie before a place."""
    return tuple(
        each if each.until is not None and each.until <= place else replace(each, until=place)
        for each in segments
        if each.since is None or each.since < place
    )


def after(segments: Sequence[Segment], place: int) -> tuple[Segment, ...]:
    """Return the parts of segments that lie at a place or after it."""
    return tuple(
        each if each.since is not None and each.since >= place else replace(each, since=place)
        for each in segments
        if each.until is None or each.until > place
    )


def place_of(lsn: int) -> int:
    """Return the place of the first change that was committed at a position or after it."""
    return lsn << PLACE_BITS


def cut(landed: Sequence[FileRef], resources: Resources, files: Files) -> tuple[Segment, ...]:
    """Cut a batch where the key of its changes is another one than before; raises EngineFailure."""
    keys = [file.key for file in landed]
    if len(set(keys)) == 1:
        return (Segment(keys[0], tuple(range(len(keys)))),)
    names = list(dict.fromkeys(keys))
    spans = dict[int, tuple[int, int]]()
    parts = list[str]()
    with duck.connect(resources, files) as db:
        for number, key in enumerate(names):
            chosen = [at for at, each in enumerate(landed) if each.key == key and each.rows]
            if chosen:
                source = f"read_parquet({db.landed(landed[at].uri for at in chosen)}, hive_partitioning = false)"
                parts.append(f"select {PLACE} as place, {number} as key from {source}")
                found = db.rows(f"select file_index, min({PLACE}), max({PLACE}) from {source} group by all")
                spans |= {chosen[at]: (first, last) for at, first, last in found}
        if not parts:
            return ()
        starts = db.rows(
            "select place, key from (select place, key, lag(key) over (order by place) as before from ("
            f"{' union all '.join(parts)})) where before is distinct from key order by place"
        )
    ends: list[int | None] = [*(place for place, _ in starts[1:]), None]
    return tuple(
        Segment(names[number], _between(spans, keys, names[number], since, until), since, until)
        for (since, number), until in zip(starts, ends, strict=True)
    )


def _between(
    spans: Mapping[int, tuple[int, int]], keys: Sequence[Key], key: Key, since: int, until: int | None
) -> tuple[int, ...]:
    """Return the files of a key that reach into a part of the stream."""
    return tuple(
        at
        for at, (first, last) in sorted(spans.items())
        if keys[at] == key and last >= since and (until is None or first < until)
    )
