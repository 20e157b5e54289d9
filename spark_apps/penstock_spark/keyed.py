"""A batch onto a table with a key: one row per key, deleted by key and appended again.

The delete needs only the keys of the target, so the cost follows the change; the row that an update leaves partly
unknown is completed from the lake first. Iceberg counts the rows it deleted: they must be as many as the keys
whose first event found a row, else the exceptions are counted one kind at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import LakeError
from penstock.lake.merge import Bounds, key_match, within
from penstock_spark import casts, write
from penstock_spark.batch import Batch
from penstock_spark.resolve import ARRIVE, DELETE, DEPART, INSERT, UPDATE, Mirror, one_row_per_key

KINDS = (INSERT, ARRIVE, UPDATE, DEPART, DELETE)


@dataclass(frozen=True)
class Facts:
    """Hold what one pass over the resolved rows yields: how many keys, by their first event, and so on."""

    first: Mapping[str, int]
    live: int
    holes: int
    keyless: int
    misfits: int
    key_bounds: Bounds
    root_bounds: Bounds

    @property
    def keys(self) -> int:
        """Return the number of keys."""
        return sum(self.first.values())

    @property
    def expected(self) -> int:
        """Return how many keys must have a row in the lake: those that no event of this batch brought."""
        return self.keys - self.first[INSERT] - self.first[ARRIVE]


def apply(batch: Batch) -> None:
    """Write the batch on the branch; raises LakeError of a kind that pauses the table."""
    mirror = batch.mirror
    resolved = one_row_per_key(batch.changes, mirror, batch.keep, moves=batch.moves)
    rows = batch.keep(casts.cast_resolved(resolved, mirror))
    facts = _facts(rows, mirror)
    if facts.keyless:
        raise LakeError(
            "schema-change",
            f"expected every change to carry the key, got {facts.keyless} keys with a NULL; "
            "the replica identity has changed: copy the table again",
        )
    batch.note_misfits(facts.misfits)
    live = rows.where("live and not hole" if mirror.holes else "live")
    if facts.holes:
        live = casts.written(live, mirror).unionByName(_filled(batch, rows, facts))
    if not batch.onto_nothing:
        _delete(batch, rows, facts)
    else:
        batch.note_conflicts(
            update_missing=facts.first[UPDATE] + facts.first[DEPART], delete_missing=facts.first[DELETE]
        )
    batch.add(casts.named(live, mirror), any_rows=facts.live > 0)


def _facts(rows: DataFrame, mirror: Mirror) -> Facts:
    ordered = [at for at, position in enumerate(mirror.keys) if mirror.lake[position].ordered]
    any_null = F.expr(" or ".join(f"{name} is null" for name in mirror.key_names))
    hole = F.col("hole") if mirror.holes else F.lit(False)

    def extremes(prefix: str, where: Column) -> list[Column]:
        values = {at: F.when(where, F.col(f"{prefix}{at}")) for at in ordered}
        return [
            end(value).alias(f"{prefix}{at}_{end.__name__}") for at, value in values.items() for end in (F.min, F.max)
        ]

    found = (
        rows.agg(
            *(F.count_if(F.col("first") == kind).alias(kind) for kind in KINDS),
            F.count_if("live").alias("live"),
            F.count_if(hole).alias("holes"),
            F.count_if(any_null).alias("keyless"),
            casts.count_misfits().alias("misfits"),
            *extremes("k", F.lit(True)),
            *(extremes("r", hole) if mirror.holes else ()),
        )
        .collect()[0]
        .asDict()
    )

    def bounds(prefix: str) -> dict[str, tuple[int, int]]:
        ends = {at: (found.get(f"{prefix}{at}_min"), found.get(f"{prefix}{at}_max")) for at in ordered}
        name = {at: mirror.lake[mirror.keys[at]].name for at in ordered}
        return {name[at]: (low, high) for at, (low, high) in ends.items() if low is not None and high is not None}

    first = {kind: found[kind] for kind in KINDS}
    numbers = {name: found[name] for name in ("live", "holes", "keyless", "misfits")}
    return Facts(first=first, key_bounds=bounds("k"), root_bounds=bounds("r"), **numbers)


def _filled(batch: Batch, rows: DataFrame, facts: Facts) -> DataFrame:
    """Complete the rows with holes from the lake; raises LakeError("divergence") where it lacks one."""
    found = 0
    if not batch.onto_nothing:
        holes = rows.where("hole")
        holes = F.broadcast(holes) if facts.holes <= write.BROADCAST_ROWS // 10 else holes
        filled = batch.keep.pinned(casts.fill(holes, batch.table.rows(), batch.mirror, facts.root_bounds))
        found = filled.count()
    if found != facts.holes:
        raise LakeError(
            "divergence",
            f"expected the lake to have the rows of {facts.holes} updates that leave values out, got {found}; "
            "copy the table again",
        )
    return filled


def _delete(batch: Batch, rows: DataFrame, facts: Facts) -> None:
    keys = casts.typed_keys(rows, batch.mirror, batch.mirror.key_names)
    columns = [batch.mirror.lake[position] for position in batch.mirror.keys]
    if batch.stop_on_conflict:
        batch.note_conflicts(**_conflicts(batch, rows, facts))
    deleted = write.delete_keys(batch.table, keys, facts.keys, columns, facts.key_bounds)
    batch.counts["rows_deleted"] += deleted
    if deleted != facts.expected and not batch.stop_on_conflict:
        batch.note_conflicts(**_conflicts(batch, rows, facts))


def _conflicts(batch: Batch, rows: DataFrame, facts: Facts) -> dict[str, int]:
    """Count, by the first event of each key, the keys that should have had a row and had none, and the reverse."""
    assert batch.start is not None  # noqa: S101  # for the type checker: who has no rows to meet does not ask
    mirror = batch.mirror
    columns = [mirror.lake[position] for position in mirror.keys]
    keys = casts.typed_keys(rows, mirror, mirror.key_names, [F.col("first")])
    keys = F.broadcast(keys) if facts.keys <= write.BROADCAST_ROWS else keys
    there = batch.table.rows_at(batch.start).alias("t")
    condition = F.expr(" and ".join([*key_match(columns), *within(facts.key_bounds)]))
    matched = there.join(keys.alias("s"), condition, how="inner").groupBy("s.first").count().collect()
    found = Counter({row["first"]: row["count"] for row in matched})
    missing = {kind: facts.first[kind] - found[kind] for kind in KINDS}
    return {
        "update_missing": missing[UPDATE] + missing[DEPART],
        "delete_missing": missing[DELETE],
        "insert_existing": found[INSERT] + found[ARRIVE],
    }
