"""The driver's clock, from which Iceberg takes the times of snapshots, held to that of the catalog's database.

Iceberg refuses a snapshot that is more than a minute older than the newest of its table. So no driver may write with a clock
that is ahead; and a time that has not come yet is taken out of a table's metadata before the next snapshot is staged on it.
"""

import json
import logging
import time
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.errors import LakeError
from penstock.jobs.pointers import TOLERANCE_SECONDS
from penstock_spark.session import iceberg_catalog, java

_TOLERANCE = TOLERANCE_SECONDS * 1000
_log = logging.getLogger("penstock.clock")


def now() -> int:
    """Return the driver's time in milliseconds since 1970, which Iceberg's own is, too."""
    return time.time_ns() // 1_000_000


def require_agreed(session: SparkSession, catalog: str) -> None:
    """Hold the driver's clock to that of the catalog's database; raises LakeError("clock-skew")."""
    before = now()
    database = _of_database(session, catalog)
    after = now()
    ahead, behind = before - database, database - after
    if max(ahead, behind) > _TOLERANCE:
        apart = f"{ahead / 1000:.0f} s ahead" if ahead > 0 else f"{behind / 1000:.0f} s behind"
        raise LakeError(
            "clock-skew",
            f"expected the Spark driver's clock within {TOLERANCE_SECONDS} s of that of the catalog's database, got {apart}; nothing was "
            "written: set the clock of the driver's machine",
        )


def without_future(table: Any) -> Any:
    """Return a loaded Iceberg table of which no time in the metadata is yet to come.

    What a driver or another writer with a clock ahead has left there becomes the present. It is written with the table's next
    metadata file; until then nothing but this object knows of it.
    """
    operations = table.operations()
    metadata, present = operations.current(), now()
    if int(metadata.lastUpdatedMillis()) <= present + _TOLERANCE:
        return table
    _log.warning("%s: times that have not come yet are taken for the present", table.name())
    parser = java("org.apache.iceberg.TableMetadataParser")
    text = json.dumps(_capped(json.loads(parser.toJson(metadata)), present))
    capped = parser.fromJson(metadata.metadataFileLocation(), text)
    _set(operations, "currentMetadata", capped)
    return table


def _capped(metadata: dict[str, Any], present: int) -> dict[str, Any]:
    """Return a table's metadata with no time after the present. Source: Iceberg specification, "Table Metadata"."""
    listed = {
        name: [{**each, "timestamp-ms": min(each["timestamp-ms"], present)} for each in metadata.get(name, ())]
        for name in ("snapshots", "snapshot-log", "metadata-log")
    }
    return {**metadata, **listed, "last-updated-ms": min(metadata["last-updated-ms"], present)}


def _of_database(session: SparkSession, catalog: str) -> int:
    """Return the time of the catalog's database in milliseconds since 1970, by a connection as Iceberg makes them."""
    pool = _get(iceberg_catalog(session, catalog), "connections")
    method = _declared(pool, "getDeclaredMethod", "newClient", _array("java.lang.Class"))
    connection = method.invoke(pool, _array("java.lang.Object"))
    try:
        statement = connection.createStatement()
        found = statement.executeQuery("select (extract(epoch from clock_timestamp()) * 1000)::bigint")
        found.next()
        return int(found.getLong(1))
    finally:
        connection.close()


def _get(holder: Any, field: str) -> Any:
    return _declared(holder, "getDeclaredField", field).get(holder)


def _set(holder: Any, field: str, value: Any) -> None:
    _declared(holder, "getDeclaredField", field).set(holder, value)


def _declared(holder: Any, how: str, *named: Any) -> Any:
    """Return a member that Iceberg has no public way to, of the object's class or the first above it that declares it."""
    kind = holder.getClass()
    while kind is not None:
        found = {str(each.getName()) for each in getattr(kind, f"{how}s")()}
        if named[0] in found:
            member = getattr(kind, how)(*named)
            member.setAccessible(True)
            return member
        kind = kind.getSuperclass()
    raise AttributeError(f"{holder.getClass().getName()} has no {named[0]}")


def _array(of: str) -> Any:
    return SparkContext._gateway.new_array(java(of), 0)
