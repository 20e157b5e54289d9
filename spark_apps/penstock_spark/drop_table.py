"""Drop a table that was set aside, with all its files, so that a run killed on the way is finished by the next one.

The catalog forgets it first. Then its folder goes by name: nothing has to be read to know what to delete. A folder that is
not the table's alone stays, and only the files go that the table's own metadata names.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from penstock.jobs.maintenance_plan import OldTable
from penstock.lake.locations import owns_folder
from penstock_spark.lake_table import LakeTable
from penstock_spark.session import iceberg_catalog

_log = logging.getLogger("penstock.maintain")


def drop_old(table: LakeTable, old: OldTable, others: Sequence[str], io: Any) -> OldTable | None:
    """Drop one old table through any table's `io`; return it, or None where its files cannot be separated from other tables'.

    `others` are the folders of all other tables. A table that the catalog no longer has was dropped by a run that died
    before it had deleted the files. One that it has again is another one.
    """
    there, lost = table.look_if_readable()
    location = there.folder if there else old.location
    alone = owns_folder(location, others)
    if ((there or lost) and not old.listed) or not (alone or (there and location not in others)):
        _log.warning("%s.%s is kept: other tables have files in its folder", old.namespace, old.table)
        return None
    if alone:
        if there or lost:
            _purge(table, files=False)
        io.deletePrefix(f"{location.rstrip('/')}/")
    else:
        _purge(table, files=True)
    _log.info("%s.%s is dropped, with its files", old.namespace, old.table)
    return replace(old, location=location)


def _purge(table: LakeTable, *, files: bool) -> None:
    """Drop a table without reading it, or with the files that its metadata names."""
    iceberg_catalog(table.session, table.catalog).dropTable(table.identifier(), files)
