"""The engine's tasks on Spark's executors: what is handed out, to how many, and only where their packages are there.

A piece of work travels as bytes, so that an executor that lacks a package answers which one instead of failing to read it.
"""

import pickle
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, TypeVar

from pyspark import SparkContext

from penstock.errors import LakeError

Answer = TypeVar("Answer")

PACKAGES = ("duckdb", "fsspec", "mmh3", "numpy", "pyarrow", "pyroaring")
"""What a task imports beside the library itself; of DuckDB, which hashes keys and casts, the very version of the driver."""

HANDED_OUT_BYTES = 32 << 20
HANDED_OUT_ROWS = 64 << 20
"""So much landed Parquet of one table, or so large a table to look for keys in, is merged by Spark's tasks; less costs
more to send than to do in the driver."""


def stays_in_driver(master: str, landed_bytes: int, target_rows: int = 0) -> bool:
    """Return whether a task runs in the driver's process: a small one, and any where Spark has no other machine."""
    return master.startswith("local") or (landed_bytes < HANDED_OUT_BYTES and target_rows < HANDED_OUT_ROWS)


def slots(context: SparkContext) -> int:
    """Return how many tasks run at once."""
    return max(1, int(context.defaultParallelism) // task_cpus(context))


def task_cpus(context: SparkContext) -> int:
    """Return the cores, and so DuckDB's threads, of a task on an executor."""
    return int(context.getConf().get("spark.task.cpus", "1") or 1)


@dataclass(frozen=True)
class Executors:
    """Carry pieces of work out in Spark's tasks."""

    context: SparkContext

    def __call__(self, work: Sequence[Callable[[], Answer]], /) -> list[Answer]:
        """Return the answers in the order of the work; raises what a piece raised, and LakeError("spark-failed")."""
        versions = {package: metadata.version(package) for package in PACKAGES}
        pieces = [pickle.dumps(each) for each in work]
        if not pieces:
            return []
        tasks = self.context.parallelize(pieces, len(pieces))
        answers: list[Any] = tasks.map(lambda piece: _carry_out(piece, versions)).collect()
        for answer in answers:
            if isinstance(answer, Unfit):
                raise LakeError("spark-failed", answer.reason)
            if isinstance(answer, Exception):
                raise answer
        return answers


@dataclass(frozen=True)
class Unfit:
    """Say that an executor cannot work, and why."""

    reason: str


def _carry_out(piece: bytes, versions: Mapping[str, str]) -> Any:
    lacking = missing(versions)
    if lacking:
        where = f"executor {socket.gethostname()} ({sys.executable})"
        return Unfit(
            f"expected the Python of every executor to have the driver's packages, got {where} without "
            f"{', '.join(lacking)}; install requirements-runtime.txt there, or name another Python in PYSPARK_PYTHON, then merge again"
        )
    from penstock.engine.task import attempt  # noqa: PLC0415  # it needs the packages

    return attempt(pickle.loads(piece))  # noqa: S301  # the driver's own


def missing(versions: Mapping[str, str]) -> list[str]:
    """Return the packages that this Python lacks, with the version where only that one will do."""
    lacking = []
    for package, version in versions.items():
        try:
            found = metadata.version(package)
        except metadata.PackageNotFoundError:
            found = ""
        if not found or (package == "duckdb" and found != version):
            lacking.append(f"{package} {version}" if package == "duckdb" else package)
    return lacking
