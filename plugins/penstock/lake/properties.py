"""What Penstock writes on its tables and commits, how its tables are stored, and in which folder: no other table's is inside of or around it.

The published watermark is a table property, for compaction and expiry lose the summaries of snapshots; the
same names in a snapshot's summary show which run made it.

A folder's name is a readable hint and an id, with a dash between them; hints have no dash, so a table's folder never is a
part of another's path. The catalog alone knows the name itself.
"""

import re
from collections.abc import Mapping, Sequence

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

_HINT = 40
_OTHERS = re.compile(r"[^A-Za-z0-9_]+")


def watermark(pipeline: str, upto_lsn: int, attempt: str) -> dict[str, str]:
    """Return the properties that say through which LSN a table is complete, and by which attempt."""
    return {PIPELINE: pipeline, LSN: str(Lsn(upto_lsn)), ATTEMPT: attempt}


def for_new_table(pipeline: str, wanted: Mapping[str, str], era: int = 1) -> dict[str, str]:
    """Return the properties of a table to create; the pipeline file's own win over our defaults."""
    return {**STORAGE, **wanted, PIPELINE: pipeline, ERA: str(era)}


def new_location(warehouse: str, target: Sequence[str], id: str) -> str | None:
    """Return the folder of a new table, `id` being its own for ever; None where the warehouse is no place but a name."""
    if not is_place(warehouse):
        return None  # a REST catalog that chooses the places itself
    *namespace, name = map(_hint, target)
    return "/".join([warehouse.rstrip("/"), *namespace, f"{name}-{id}"])


def is_place(warehouse: str) -> bool:
    """Return whether a warehouse is a folder, and not a name that only the catalog knows."""
    return ":/" in warehouse or warehouse.startswith("/")


def folder_of(metadata_file: str) -> str:
    """Return the folder of the table that has this metadata file; its metadata's, where that was put elsewhere."""
    return metadata_file.rpartition("/")[0].removesuffix("/metadata")


def owns_folder(location: str, others: Sequence[str]) -> bool:
    """Return whether no other table's folder is this one, is inside of it, or is around it.

    Where two share a place, the files of one look like orphans of the other.
    """
    own = _whole(location)
    return not any(own.startswith(_whole(other)) or _whole(other).startswith(own) for other in others)


def _hint(name: str) -> str:
    return _OTHERS.sub("_", name)[:_HINT]


def _whole(location: str) -> str:
    return f"{location.rstrip('/')}/"
