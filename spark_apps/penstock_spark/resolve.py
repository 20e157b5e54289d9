"""From the changes of one batch to one row per key, all of it on PostgreSQL's own texts.

An update that moves a row to another key is two events: the row departs from the old key and arrives at the new
one. The events of one key, in order, fall into segments, the lives of rows under that key: one begins with an
insert or an arrival (or was in the lake before), and ends with a delete or a departure (or with the batch).

Unchanged TOAST is unknown, not NULL. A column's value is the last known one of its segment; where a segment that
began with an arrival knows none, the segment that the row departed from does. Departure and arrival are the
same change, so its position links the two, and following the links leads to an insert, which knows everything,
or to the row that the lake has under the row's original key: its root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from penstock.lake.columns import LakeColumn, lake_column
from penstock.lake.mirror_column import MirrorColumn
from penstock.lake.quoting import literal, path
from penstock.values.casts import cast_sql

INSERT, ARRIVE, UPDATE, DELETE, DEPART = "I", "M", "U", "D", "L"
BIRTHS, DEATHS = (INSERT, ARRIVE), (DELETE, DEPART)

Keep = Callable[[DataFrame], DataFrame]
"""Persist a frame that is read more than once; its owner releases it when the table is done."""


@dataclass(frozen=True)
class Mirror:
    """Describe the table of a batch; frames name its columns by position, so that no two names can clash.

    `unchanged` are the positions of columns that some change leaves out as unchanged TOAST; `holes`: whether
    an old image supplies all of those (False) or some stay unknown (True).
    """

    columns: tuple[MirrorColumn, ...]
    unchanged: frozenset[int] = frozenset()
    holes: bool = False

    @cached_property
    def lake(self) -> tuple[LakeColumn, ...]:
        """Return the lake's columns, `_misfits` excepted."""
        return tuple(map(lake_column, self.columns))

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """Return the positions of the key columns."""
        return tuple(position for position, column in enumerate(self.columns) if column.key)

    @cached_property
    def partial(self) -> tuple[int, ...]:
        """Return the positions of the columns whose last value may stand in an earlier change; never of a key."""
        return tuple(sorted(self.unchanged - set(self.keys)))

    @cached_property
    def key_names(self) -> list[str]:
        """Name the key's columns: of the lake's type where every text fits it (fast to compare), else the text."""
        return [f"k{position}" for position in range(len(self.keys))]

    @cached_property
    def root_names(self) -> list[str]:
        """Name the columns of the key under which the lake had the row when the batch began."""
        return [f"r{position}" for position in range(len(self.keys))]

    @cached_property
    def known_names(self) -> list[str]:
        """Name the columns that hold a partial column's last value: a struct (`known`, `text`)."""
        return [f"v{position}" for position in self.partial]

    def text(self, position: int) -> str:
        """Return the SQL of a column's text after a change; what `new` leaves out stands in `old`, if anywhere."""
        name = self.columns[position].name
        if position not in self.unchanged:
            return path("new", name)
        left_out = f"array_contains(unchanged, {literal(name)})"
        return f"case when {left_out} then {path('old', name)} else {path('new', name)} end"


def one_row_per_key(changes: DataFrame, mirror: Mirror, keep: Keep, *, moves: bool) -> DataFrame:
    """Return the last state of each key that the changes touch.

    `moves`: whether an update may carry an old key. Columns: the key; `live`, whether a row is there at the
    end; `first`, the kind of the key's first event; `new`, the last image; and where columns are partial, their last
    values, and the root key, where there is one.
    """
    events = _events(changes, mirror, moves=moves)
    if not mirror.partial:
        return _last_events(events, mirror)
    segments = _segments(events, mirror)
    columns = [*mirror.key_names, "live", "first", "new", *mirror.known_names, *mirror.root_names]
    if not (mirror.holes and moves):
        return segments.where("last").select(*columns)
    segments = keep(segments)
    links = _links(segments.where(F.col("kind") == DEPART), mirror)
    return _follow(segments.where("last"), links, mirror).select(*columns)


def any_hole(mirror: Mirror) -> Column:
    """Return whether a value of a row is unknown."""
    return reduce(or_, (~F.col(name)["known"] for name in mirror.known_names), F.lit(False))


def _events(changes: DataFrame, mirror: Mirror, *, moves: bool) -> DataFrame:
    """Turn changes into events of one key each."""
    before = [path("old", mirror.columns[position].name) for position in mirror.keys]
    after = [mirror.text(position) for position in mirror.keys]
    after_or_deleted = [f"case when op = 'D' then {b} else {a} end" for b, a in zip(before, after, strict=True)]
    if not moves:
        return _event(changes, mirror, after_or_deleted, F.col("op"), step=1)
    same_key = " and ".join(f"({b}) <=> ({a})" for b, a in zip(before, after, strict=True))
    moved = F.expr(f"op = 'U' and old_kind is not null and not ({same_key})")
    arrivals = _event(changes, mirror, after_or_deleted, F.when(moved, ARRIVE).otherwise(F.col("op")), step=1)
    departures = changes.where(moved).withColumn("new", F.lit(None).cast(changes.schema["new"].dataType))
    return arrivals.unionByName(_event(departures, mirror, before, F.lit(DEPART), step=0))


def _event(changes: DataFrame, mirror: Mirror, keys: Sequence[str], kind: Column, *, step: int) -> DataFrame:
    texts = (F.expr(key).alias(name) for key, name in zip(keys, mirror.key_names, strict=True))
    extra = ("old", "old_kind", "unchanged") if mirror.partial else ()
    frame = changes.select(
        *texts, "commit_lsn", "ordinal", F.lit(step).alias("step"), kind.alias("kind"), "new", *extra
    )
    typed = {
        name: F.expr(cast_sql(name, mirror.columns[position].type))
        for name, position in zip(mirror.key_names, mirror.keys, strict=True)
        if mirror.lake[position].always_fits
    }
    return frame.withColumns(typed)


def _last_events(events: DataFrame, mirror: Mirror) -> DataFrame:
    """Return each key's last event, which knows every column where none is partial: two window functions are enough."""
    in_order = Window.partitionBy(*mirror.key_names).orderBy("commit_lsn", "ordinal", "step")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    edges = events.withColumns({"first": F.first("kind").over(so_far), "after": F.lead("kind").over(in_order)})
    live = ~F.col("kind").isin(*DEATHS)
    return edges.where("after is null").select(*mirror.key_names, live.alias("live"), "first", "new")


def _segments(events: DataFrame, mirror: Mirror) -> DataFrame:
    """Return each segment's last event, with what is known by then and the event that the segment began with."""
    in_order = Window.partitionBy(*mirror.key_names).orderBy("commit_lsn", "ordinal", "step")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    kind, before, after = F.col("kind"), F.col("before"), F.col("after")
    starts = before.isNull() | kind.isin(*BIRTHS) | before.isin(*DEATHS)
    ends = after.isNull() | after.isin(*BIRTHS) | kind.isin(*DEATHS)
    origin = F.struct(kind, "commit_lsn", "ordinal", before.isNull().alias("first"))
    values = {
        name: F.last(_value(mirror, position, starts), ignorenulls=True).over(so_far)
        for name, position in zip(mirror.known_names, mirror.partial, strict=True)
    }
    segments = (
        events.withColumns({"before": F.lag("kind").over(in_order), "after": F.lead("kind").over(in_order)})
        .withColumns(
            {
                "last": after.isNull(),
                "ends": ends,
                "first": F.first("kind").over(so_far),
                "origin": F.last(F.when(starts, origin), ignorenulls=True).over(so_far),
                **values,
            }
        )
        .where("ends")
    )
    in_lake = F.col("origin.first") & ~F.col("origin.kind").isin(*BIRTHS)
    roots = (
        F.when(in_lake, F.col(key)).alias(root) for key, root in zip(mirror.key_names, mirror.root_names, strict=True)
    )
    live = ~kind.isin(*DEATHS)
    place = F.struct("commit_lsn", "ordinal").alias("place")
    return segments.select(
        *mirror.key_names,
        place,
        "kind",
        "last",
        live.alias("live"),
        "first",
        "origin",
        "new",
        *mirror.known_names,
        *roots,
    )


def _value(mirror: Mirror, position: int, starts: Column) -> Column:
    """Return what one event says of a column: a value, that it is unknown (where a segment starts), or nothing."""
    left_out = F.coalesce(F.array_contains("unchanged", F.lit(mirror.columns[position].name)), F.lit(False))
    known = ~F.col("kind").isin(*DEATHS) & (~left_out | F.col("old_kind").eqNullSafe("O"))
    value = F.struct(F.lit(True).alias("known"), F.expr(mirror.text(position)).alias("text"))
    unknown = F.struct(F.lit(False).alias("known"), F.lit(None).cast("string").alias("text"))
    return F.when(known, value).when(starts, unknown)


def _links(departures: DataFrame, mirror: Mirror) -> DataFrame:
    """Return, by the place of each move, what the row's lives before it say: last values and root key.

    Each round lets every link see twice as far back, so a row that moved n times takes log2(n) rounds. A round joins
    the links with themselves: only a checkpoint keeps the plan from doubling each time, persisting does not.
    """
    origin = F.struct("origin.commit_lsn", "origin.ordinal")
    further = F.when(any_hole(mirror) & (F.col("origin.kind") == ARRIVE), origin).alias("further")
    links = departures.select("place", further, *mirror.known_names, *mirror.root_names).localCheckpoint()
    while not links.where("further is not null").isEmpty():
        links = _inherit(links, links, F.col("child.further"), mirror, ["place", "parent.further"]).localCheckpoint()
    return links


def _follow(rows: DataFrame, links: DataFrame, mirror: Mirror) -> DataFrame:
    """Give rows that arrived with unknown values what the links know."""
    arrived = any_hole(mirror) & (F.col("origin.kind") == ARRIVE) & F.col("live")
    own = [*mirror.key_names, "live", "first", "new"]
    origin = F.struct("child.origin.commit_lsn", "child.origin.ordinal")
    complete = rows.where(~arrived).select(*own, *mirror.known_names, *mirror.root_names)
    return complete.unionByName(_inherit(rows.where(arrived), links, origin, mirror, own))


def _inherit(children: DataFrame, links: DataFrame, place: Column, mirror: Mirror, own: Sequence[str]) -> DataFrame:
    """Let children take unknown values and their root from the link at a place."""
    values = (
        F.when(F.col(f"child.{name}.known"), F.col(f"child.{name}"))
        .otherwise(F.coalesce(f"parent.{name}", f"child.{name}"))
        .alias(name)
        for name in mirror.known_names
    )
    roots = (F.coalesce(f"parent.{name}", f"child.{name}").alias(name) for name in mirror.root_names)
    columns = [F.col(name if "." in name else f"child.{name}") for name in own]
    return (
        children.alias("child")
        .join(links.alias("parent"), place == F.col("parent.place"), how="left")
        .select(*columns, *values, *roots)
    )
