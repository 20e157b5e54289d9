"""From texts to the lake's types: casts, the misfits next to them, and the values that only the lake still knows.

Frames here name the columns of the table `c0`, `c1`, ... and the map of misfits `misfits`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.lake.columns import MISFITS, MISFITS_TYPE
from penstock.lake.merge import Bounds, key_match, key_misfit_name, key_name, within
from penstock.lake.misfits import CastColumn, misfits_sql
from penstock.lake.quoting import identifier, path
from penstock.values.casts import cast_sql
from penstock.values.misfits import misfit_sql
from penstock_spark.resolve import Mirror, any_hole


def cast_rows(
    rows: DataFrame,
    mirror: Mirror,
    texts: Mapping[int, str],
    others: Sequence[Column],
    typed: Mapping[int, str] | None = None,
) -> DataFrame:
    """Return the table's typed columns and misfits, and other columns of the frame as they are.

    `texts` is the SQL of each column's text, by position; `typed` that of columns whose typed value is there already.
    """
    ready = {f"c{i}": F.expr(value) for i, value in (typed or {}).items()}
    cast = {f"c{i}": F.expr(cast_sql(f"t{i}", mirror.columns[i].type)) for i in texts}
    checked = [CastColumn(mirror.columns[i].name, f"t{i}", f"c{i}", mirror.lake[i].type) for i in texts]
    return (
        rows.select(
            *others, *(F.expr(text).alias(f"t{i}") for i, text in texts.items()), *(ready[n].alias(n) for n in ready)
        )
        .withColumns(cast)
        .withColumn("misfits", F.expr(misfits_sql(checked)))
        .drop(*(f"t{i}" for i in texts))
    )


def count_misfits(among: Column | None = None) -> Column:
    """Count values that do not fit, over all rows or some."""
    there = F.col("misfits").isNotNull()
    return F.coalesce(F.sum(F.when(there if among is None else there & among, F.size("misfits"))), F.lit(0))


def _last_text(mirror: Mirror, position: int) -> str:
    """Return the SQL of a column's last text in a frame of resolved rows."""
    if position in mirror.keys:
        return mirror.key_names[mirror.keys.index(position)]
    return f"v{position}.text" if position in mirror.partial else path("new", mirror.columns[position].name)


def cast_resolved(resolved: DataFrame, mirror: Mirror) -> DataFrame:
    """Return resolved rows with typed values; `hole` marks live rows with an unknown one, `unknown` names those."""
    unknown = (
        F.when(~F.col(name)["known"], F.lit(i)) for name, i in zip(mirror.known_names, mirror.partial, strict=True)
    )
    holes = [
        (F.col("live") & any_hole(mirror)).alias("hole"),
        F.array_compact(F.array(*unknown)).cast("array<int>").alias("unknown"),
    ]
    others = [*map(F.col, mirror.key_names), F.col("live"), F.col("first")]
    if mirror.holes:
        others += [*holes, *map(F.col, mirror.root_names)]
    last = {i: _last_text(mirror, i) for i in range(len(mirror.columns))}
    typed = {i: text for i, text in last.items() if i in mirror.keys and mirror.lake[i].always_fits}
    texts = {i: text for i, text in last.items() if i not in typed}
    return cast_rows(resolved, mirror, texts, others, typed)


def typed_keys(rows: DataFrame, mirror: Mirror, names: Sequence[str], others: Sequence[Column] = ()) -> DataFrame:
    """Return keys as the lake holds them: their typed values, and the texts of those that do not fit."""
    columns: list[Column] = []
    for at, (position, name) in enumerate(zip(mirror.keys, names, strict=True)):
        if mirror.lake[position].always_fits:
            columns.append(F.col(name).alias(key_name(at)))
        else:
            type_ = mirror.columns[position].type
            columns.append(F.expr(cast_sql(name, type_)).alias(key_name(at)))
            misfit = misfit_sql(name, type_)
            kept = F.when(F.expr(misfit), F.col(name)) if misfit else F.lit(None).cast("string")
            columns.append(kept.alias(key_misfit_name(at)))
    return rows.select(*columns, *others)


def fill(holes: DataFrame, lake: DataFrame, mirror: Mirror, bounds: Bounds) -> DataFrame:
    """Return the rows with holes that the lake has under their root key, completed from it.

    The lake's side reads its key, the partial columns and `_misfits`, within the bounds of the root keys.
    """
    wanted = typed_keys(
        holes, mirror, mirror.root_names, [F.struct(*_columns(mirror), "misfits", "unknown").alias("row")]
    )
    keys = [mirror.lake[position] for position in mirror.keys]
    needed = {mirror.columns[i].name for i in (*mirror.keys, *mirror.partial)}
    there = lake.select(*(F.col(identifier(name)) for name in sorted(needed)), F.col(MISFITS.name))
    condition = F.expr(" and ".join([*key_match(keys), *within(bounds)]))
    found = there.alias("t").join(wanted.alias("s"), condition, how="inner")
    return found.select(*(_filled(mirror, i) for i in range(len(mirror.columns))), _filled_misfits(mirror))


def written(rows: DataFrame, mirror: Mirror) -> DataFrame:
    """Return the columns that are written, of rows that have others too."""
    return rows.select(*_columns(mirror), "misfits")


def named(rows: DataFrame, mirror: Mirror) -> DataFrame:
    """Return rows with the table's own column names: the form in which they are written."""
    columns = (F.col(f"c{i}").alias(column.name) for i, column in enumerate(mirror.columns))
    return rows.select(*columns, F.col("misfits").alias(MISFITS.name))


def _columns(mirror: Mirror) -> list[str]:
    return [f"c{i}" for i in range(len(mirror.columns))]


def _filled(mirror: Mirror, position: int) -> Column:
    own = F.col(f"s.row.c{position}")
    if position not in mirror.partial:
        return own.alias(f"c{position}")
    theirs = F.expr(path("t", mirror.columns[position].name))
    return F.when(F.array_contains("s.row.unknown", F.lit(position)), theirs).otherwise(own).alias(f"c{position}")


def _filled_misfits(mirror: Mirror) -> Column:
    """Join the misfits of the known values with the lake's for the unknown ones; NULL where there are none."""
    names = F.array(*(F.lit(column.name) for column in mirror.columns))
    unknown = F.transform("s.row.unknown", lambda position: F.element_at(names, position + 1))
    kept = F.map_filter(F.col("t._misfits"), lambda name, _: F.array_contains(unknown, name))
    empty = F.create_map().cast(MISFITS_TYPE)
    both = F.map_concat(F.coalesce("s.row.misfits", empty), F.coalesce(kept, empty))
    return F.when(F.size(both) > 0, both).alias("misfits")
