"""Where things lie in the landing zone: paths relative to its root, joined by `/`.

A window and a merge run get one folder per attempt, so that the files of a killed attempt are never in the
way of its successor: nothing refers to them, and a sweeper may delete the folder.
"""

from __future__ import annotations

from penstock.lsn import Lsn


def windows_folder(pipeline: str) -> str:
    """Name the folder of all windows of a pipeline."""
    return f"{pipeline}/windows"


def window_folder(pipeline: str, from_: Lsn, upto: Lsn, attempt: str) -> str:
    """Name the folder of one attempt at the window `(from_, upto]`; windows sort by position."""
    return f"{windows_folder(pipeline)}/{from_.hex16}-{upto.hex16}/{attempt}"


def window_file(folder: str, oid: int, version: int) -> str:
    """Name the file of one relation shape in a window."""
    return f"{folder}/{oid}.{version}.parquet"


def copy_folder(pipeline: str, copy_id: str) -> str:
    """Name the folder of one copy."""
    return f"{pipeline}/copies/{copy_id}"


def copy_file(folder: str, part: str) -> str:
    """Name one file of a copy."""
    return f"{folder}/{part}.parquet"


def run_folder(pipeline: str, attempt: str) -> str:
    """Name the folder of the plan and the result of one merge attempt."""
    return f"{pipeline}/runs/{attempt}"
