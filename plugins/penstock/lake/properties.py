"""What Penstock writes on its tables and commits, and how its tables are stored.

The published watermark is a table property, for compaction and expiry lose the summaries of snapshots; the
same names in a snapshot's summary show which run made it.
"""

from collections.abc import Mapping

from penstock.config.validators import FORMAT_VERSION
from penstock.lsn import Lsn

PIPELINE = "penstock.pipeline"
LSN = "penstock.lsn"
ATTEMPT = "penstock.attempt"
ERA = "penstock.era"
COLUMNS = "penstock.columns"
"""Which of the source's columns (attnum) each field of a mirror is, by field id, as JSON."""

STORAGE: Mapping[str, str] = {
    "format-version": FORMAT_VERSION,
    # Iceberg's own level 3 costs a fifth more to write and makes the files hardly smaller.
    "write.parquet.compression-level": "1",
    # A compacted table is one file; by Iceberg's own 128 MiB it would be one row group, which one core reads alone.
    "write.parquet.row-group-size-bytes": str(32 << 20),
}


def watermark(pipeline: str, upto_lsn: int, attempt: str) -> dict[str, str]:
    """Return the properties that say through which LSN a table is complete, and by which attempt."""
    return {PIPELINE: pipeline, LSN: str(Lsn(upto_lsn)), ATTEMPT: attempt}


def for_new_table(pipeline: str, wanted: Mapping[str, str], era: int = 1) -> dict[str, str]:
    """Return the properties of a table to create; the pipeline file's own win over our defaults."""
    return {**STORAGE, **wanted, PIPELINE: pipeline, ERA: str(era)}
