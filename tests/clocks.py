"""A lake in which a driver has written whose clock was ahead, and a driver whose clock jumps."""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.flow.spark_job import SparkJob, Submit
from penstock.jobs.plans import MergeResult
from penstock.jobs.pointers import Pointer

HOUR = 3_600_000


def metadata_files(connect: Callable[[], Any], namespace: str) -> dict[str, str]:
    """Return the metadata file of each table of a pipeline, the table of cuts included, by its name."""
    query = """
        select table_name, metadata_location from iceberg_tables where table_namespace in (%s, %s) order by table_name
        """
    with connect() as connection:
        rows = connection.execute(query, (namespace, f"{namespace}.public")).fetchall()
    return dict(rows)


def read(location: str) -> dict[str, Any]:
    """Return a metadata file."""
    found: dict[str, Any] = json.loads(_path(location).read_text())
    return found


def times(metadata: dict[str, Any]) -> list[int]:
    """Return every time of a table's metadata, in milliseconds since 1970."""
    listed = [each["timestamp-ms"] for name in ("snapshots", "snapshot-log", "metadata-log") for each in metadata[name]]
    return [metadata["last-updated-ms"], *listed]


def shifted(location: str, by: int = HOUR) -> str:
    """Write a metadata file again as if the newest commit had been made with another clock; return the new file."""
    metadata = read(location)
    newest = metadata.get("current-snapshot-id")
    metadata["last-updated-ms"] += by
    for each in (*metadata["snapshots"], *metadata["snapshot-log"]):
        if each["snapshot-id"] == newest:
            each["timestamp-ms"] += by
    moved = location.replace(".metadata.json", f"-{by}.metadata.json")
    _path(moved).write_text(json.dumps(metadata))
    return moved


def move_into_the_future(connect: Callable[[], Any], namespace: str, tables: Collection[str] | None = None) -> None:
    """Leave tables, all or those named, as a driver does whose clock is an hour ahead."""
    for name, location in metadata_files(connect, namespace).items():
        if tables is None or name in tables:
            with connect() as connection:
                connection.execute(
                    "update iceberg_tables set metadata_location = %s where metadata_location = %s",
                    (shifted(location), location),
                )


@contextmanager
def driver_clock(by: int) -> Iterator[None]:
    """Let the driver of this process have a clock that is ahead by so many milliseconds, or behind."""
    from penstock_spark import clock  # noqa: PLC0415  # only where Spark is

    right = clock.now
    clock.now = lambda: right() + by
    try:
        yield
    finally:
        clock.now = right


def jumping(submit: Submit, by: int = HOUR) -> Submit:
    """Return a way to submit by which the driver's clock jumps after it was looked at."""

    def submit_and_jump(job: SparkJob) -> None:
        submit(job)
        answer = _path(job.arguments[3])
        answer.write_text(_jumped(MergeResult.loads(answer.read_text()), by).dumps())

    return submit_and_jump


def _jumped(result: MergeResult, by: int) -> MergeResult:
    """Return what a driver would have staged whose clock had jumped after it was looked at."""

    def moved(pointer: Pointer | None) -> Pointer | None:
        if pointer is None:
            return None
        return replace(pointer, new=shifted(pointer.new, by), stamped=(pointer.stamped or 0) + by)

    tables = tuple(replace(each, pointer=moved(each.pointer)) for each in result.tables)
    return replace(result, tables=tables, cuts=moved(result.cuts))


def _path(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))
