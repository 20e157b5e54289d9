"""### A worked example: one file of sales per day, from a consistent cut of the lake

**Does** for each day (UTC) that is complete and has no file yet: takes the first cut past the day's end, reads orders and
their lines *at that cut* by PyIceberg, sums them up with DuckDB, and writes `<day>.parquet`. Because both tables are read
at the snapshots that one cut names, no order is ever without its lines.

**Runs** whenever Penstock publishes a cut: it waits for the asset of the lake. A run without a complete day writes nothing.

**Safe to repeat, to clear, to kill.** A day's file appears under its name when it is whole; a day that has one is done.

**To use it**, copy this file to your folder of DAGs and set the four variables below, or their environment variables. It
needs the connection of the catalog, and the packages pyiceberg and duckdb; nothing of Penstock.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, BaseHook, task

PIPELINE = os.environ.get("EXAMPLE_PIPELINE", "shop")
CATALOG = os.environ.get("EXAMPLE_CATALOG", "lake")  # its name is part of every table's key
CONNECTION = os.environ.get("EXAMPLE_CONNECTION", "penstock_catalog")
FOLDER = Path(os.environ.get("EXAMPLE_FOLDER", "/var/lib/example/orders_by_day"))

ORDERS, LINES = f"{PIPELINE}.shop.orders", f"{PIPELINE}.shop.order_lines"
SLACK = timedelta(minutes=1)  # a commit gets its time a little before it can be read
DAYS = 7  # look back so far for days without a file


@dataclass(frozen=True)
class Cut:
    """One cut of the lake: by which time of the source it is complete, and each ready table's snapshot."""

    lsn: str
    source_time: datetime
    snapshots: dict[str, int]


def catalog() -> Any:
    """Open the lake's catalog with the login of the Airflow connection."""
    from pyiceberg.catalog.sql import SqlCatalog  # noqa: PLC0415  # a DAG file should be quick to parse
    from sqlalchemy import URL  # noqa: PLC0415

    found = BaseHook.get_connection(CONNECTION)
    url = URL.create(
        "postgresql+psycopg", found.login, found.password, found.host, found.port or 5432, found.schema or ""
    )
    return SqlCatalog(CATALOG, uri=url.render_as_string(hide_password=False), init_catalog_tables="false")


def cuts(lake: Any) -> list[Cut]:
    """Return the cuts that say by which time they are complete and show both tables, oldest first."""
    rows = lake.load_table(f"{PIPELINE}._penstock_cuts").scan().to_arrow().to_pylist()
    found = [
        Cut(
            row["lsn"],
            row["source_time"],
            {table["name"]: table["snapshot_id"] for table in row["tables"] if table["state"] == "ready"},
        )
        for row in sorted(rows, key=lambda row: (row["era"], row["cut_lsn"], row["published_at"]))
        if row["source_time"] is not None
    ]
    return [cut for cut in found if {ORDERS, LINES} <= cut.snapshots.keys()]


def end_of(day: date) -> datetime:
    """Return the moment at which a day is over."""
    return datetime.combine(day + timedelta(days=1), time(), UTC)


def first_cut_past(day: date, found: list[Cut], readable: set[int]) -> Cut | None:
    """Return the first cut that has every change of the day and can still be read; None while there is none."""
    past = (cut for cut in found if cut.source_time >= end_of(day) + SLACK)
    return next((cut for cut in past if {cut.snapshots[ORDERS], cut.snapshots[LINES]} <= readable), None)


def write_day(lake: Any, day: date, cut: Cut) -> Path:
    """Sum up one day's orders at one cut and write them whole."""
    import duckdb  # noqa: PLC0415

    orders = lake.load_table(ORDERS).scan(snapshot_id=cut.snapshots[ORDERS]).to_arrow()
    lines = lake.load_table(LINES).scan(snapshot_id=cut.snapshots[LINES]).to_arrow()
    path, draft = FOLDER / f"{day}.parquet", FOLDER / f".{day}.part"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as database:
        database.register("orders", orders)
        database.register("lines", lines)
        database.execute("set timezone = 'UTC'")
        sales = database.sql(
            """
            select o.id, o.customer_id, count(l.line_no) as lines, sum(l.quantity * l.price) as amount
            from orders as o left join lines as l on l.order_id = o.id
            where o.placed_at >= $start and o.placed_at < $end
            group by all
            order by o.id
            """,
            params={"start": end_of(day - timedelta(days=1)), "end": end_of(day)},
        )
        sales.write_parquet(str(draft))
    draft.rename(path)
    return path


with DAG(
    dag_id="example.orders_by_day",
    doc_md=__doc__,
    schedule=[Asset(name=f"{PIPELINE}.lake", uri=f"penstock://{PIPELINE}/lake")],
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags={"example"},
) as dag:

    @task
    def write_complete_days() -> list[str]:
        """Write every day that is complete and has no file yet; return them."""
        lake = catalog()
        found = cuts(lake)
        readable = {snapshot.snapshot_id for name in (ORDERS, LINES) for snapshot in lake.load_table(name).snapshots()}
        today = found[-1].source_time.date() if found else date.min
        days = [today - timedelta(days=back) for back in range(DAYS, 0, -1)] if found else []
        written = []
        for day in days:
            cut = first_cut_past(day, found, readable)
            if cut is not None and not (FOLDER / f"{day}.parquet").exists():
                write_day(lake, day, cut)
                written.append(str(day))
        return written

    write_complete_days()
