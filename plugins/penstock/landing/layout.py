"""Where things lie in the landing zone: paths relative to its root, joined by `/`.

A window and a merge run get one folder per attempt, so that the files of a killed attempt are never in the
way of its successor: nothing refers to them, and maintenance deletes the folder.
"""

from penstock.lsn import Lsn


def mark_file(pipeline: str) -> str:
    """Name the file by which the ledger knows the zone."""
    return f"{pipeline}/landing-mark.txt"


def windows_folder(pipeline: str) -> str:
    """Name the folder of all windows of a pipeline."""
    return f"{pipeline}/windows"


def range_folder(pipeline: str, from_: Lsn, upto: Lsn) -> str:
    """Name the folder of all attempts at the window `(from_, upto]`; windows sort by position."""
    return f"{windows_folder(pipeline)}/{from_.hex16}-{upto.hex16}"


def window_folder(pipeline: str, from_: Lsn, upto: Lsn, attempt: str) -> str:
    """Name the folder of one attempt at the window `(from_, upto]`."""
    return f"{range_folder(pipeline, from_, upto)}/{attempt}"


def window_file(folder: str, oid: int, version: int) -> str:
    """Name the file of one relation shape in a window."""
    return f"{folder}/{oid}.{version}.parquet"


def copies_folder(pipeline: str) -> str:
    """Name the folder of all copies of a pipeline."""
    return f"{pipeline}/copies"


def copy_folder(pipeline: str, copy_id: str) -> str:
    """Name the folder of one copy."""
    return f"{copies_folder(pipeline)}/{copy_id}"


def copy_file(folder: str, part: str) -> str:
    """Name one file of a copy."""
    return f"{folder}/{part}.parquet"


def runs_folder(pipeline: str) -> str:
    """Name the folder of all merge attempts of a pipeline."""
    return f"{pipeline}/runs"


def run_folder(pipeline: str, attempt: str) -> str:
    """Name the folder of the plan and the result of one attempt at a merge, a changelog or maintenance."""
    return f"{runs_folder(pipeline)}/{attempt}"


def plan_file(pipeline: str, attempt: str) -> str:
    """Name the file of what an attempt at a merge or a changelog orders from Spark."""
    return f"{run_folder(pipeline, attempt)}/plan.json"


def result_file(pipeline: str, attempt: str) -> str:
    """Name the file of Spark's answer to an attempt at a merge or a changelog."""
    return f"{run_folder(pipeline, attempt)}/result.json"


def progress_file(pipeline: str, attempt: str) -> str:
    """Name the file in which Spark says how far an attempt at a merge is."""
    return f"{run_folder(pipeline, attempt)}/progress.json"


def orders_file(pipeline: str, attempt: str) -> str:
    """Name the file that orders an application which is kept, and was submitted for this attempt."""
    return f"{run_folder(pipeline, attempt)}/orders.json"
