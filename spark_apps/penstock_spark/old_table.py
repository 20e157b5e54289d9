"""Drop a table that was set aside, with all its files, so that a run killed on the way is finished by the next one.

The catalog forgets it first. Then its folder goes by name: nothing has to be read to know what to delete.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from penstock.lake.maintenance import OldTable, owns_folder
from penstock_spark.lake_table import LakeTable

_log = logging.getLogger("penstock.maintain")


def drop_old(table: LakeTable, old: OldTable, folders: tuple[str, ...], io: Any) -> OldTable | None:
    """Drop one old table through any table's `io`; return it, or None where its folder is not its own.

    A table that the catalog no longer has was dropped by a run that died before it had deleted the files. One that
    it has again is another one.
    """
    there = table.exists()
    location = table.folder() if there else old.location
    if (there and not old.listed) or not owns_folder(location, folders, own=int(old.listed)):
        _log.warning("%s.%s is kept: other tables have files in its folder", old.namespace, old.table)
        return None
    if there:
        table.drop()
    io.deletePrefix(f"{location.rstrip('/')}/")
    _log.info("%s.%s is dropped, with its files", old.namespace, old.table)
    return replace(old, location=location)
