"""Whose failure it is when a table's merge ends with an error: the table's own, or that of the whole run.

What every table needs (memory, disk, network, the catalog's database, Spark itself) fails the run, which is retried.
The text of a Spark error may quote values, so nothing of it is passed on: only classes, Spark's condition, a file's name.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Collection, Iterator
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.engine.failure import EngineFailure
from penstock.errors import LakeError

_LONGEST_CHAIN = 20
_FRAMES = 8
# The classes of Java, without their packages.
_COMMON = frozenset(
    {
        *("OutOfMemoryError", "SparkOutOfMemoryError", "NoClassDefFoundError", "ClassNotFoundException"),
        *("NoSuchMethodError", "InterruptedException", "UncheckedInterruptedException", "ClosedByInterruptException"),
        *("ConnectException", "NoRouteToHostException", "SocketException", "SocketTimeoutException"),
        *("UnknownHostException", "SdkClientException", "ApiCallTimeoutException", "FetchFailedException"),
    }
)
_COMMON_TEXTS = (
    *("No space left on device", "Disk quota exceeded", "Too many open files", "ExecutorLostFailure"),
    *("SparkContext was shut down", "stopped SparkContext"),
)
_FILES = frozenset(
    {
        *("NotFoundException", "FileNotFoundException", "NoSuchFileException", "NoSuchKeyException"),
        *(
            "AccessDeniedException",
            "RuntimeIOException",
            "EOFException",
            "JsonParseException",
            "ValueInstantiationException",
        ),
        *(
            "AvroRuntimeException",
            "InvalidAvroMagicException",
            "ParquetDecodingException",
            "ParquetCryptoRuntimeException",
        ),
    }
)
_FILE_CONDITIONS = ("FAILED_READ_FILE", "CANNOT_READ_FILE")
_FILE_NAME = re.compile(r"[\w.%=-]+\.(?:parquet|puffin|avro|metadata\.json)\b")
_CLASS = re.compile(r"\b(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error))\b")


class OwnFailureError(LakeError):
    """One table's own failure without a kind; `cause` names the error's class and condition."""

    def __init__(self, slug: str, message: str, cause: str) -> None:
        super().__init__(slug, message)
        self.cause = cause


def own_failure(
    error: Exception, session: SparkSession, target: str, landed: Collection[str]
) -> OwnFailureError | None:
    """Return the reason for which one table pauses, or None where the error concerns the whole run.

    `landed` are the landing files that were read: one of them that is gone is a case for the next plan, which halts.
    """
    if isinstance(error, EngineFailure):
        return _of_engine(error, target, landed)
    causes = list(_causes(error))
    names = [_name(cause) for cause in causes]
    texts = "\n".join(str(cause.getMessage()) for cause in causes)
    # what failed in a task of Spark's is named in the driver's text only
    named = [*names, *_CLASS.findall(texts)]
    file = _FILE_NAME.search(texts)
    if _is_common(error, causes, named, texts, session) or (file and any(each.endswith(file[0]) for each in landed)):
        return None
    missing, condition = [name for name in named if name in _FILES], _condition(error)
    kind = (missing or names or [type(error).__name__])[-1]
    cause = f"{kind}, {condition}" if condition else kind
    unreadable = bool(missing) or condition.startswith(_FILE_CONDITIONS)
    return _failure(target, cause, file[0] if file else None, unreadable=unreadable)


def _of_engine(error: EngineFailure, target: str, landed: Collection[str]) -> OwnFailureError | None:
    if error.of_the_machine or (error.file and any(each.endswith(error.file) for each in landed)):
        return None
    return _failure(target, error.kind, error.file, unreadable=error.unreadable)


def _failure(target: str, cause: str, file: str | None, *, unreadable: bool) -> OwnFailureError:
    if unreadable:
        return OwnFailureError(
            "lake-unreadable",
            f"expected to read and write the lake's files of {target}, got twice: {cause}"
            f"{f' at {file}' if file else ''}; put back what is gone and resume the table, or resync it",
            cause,
        )
    return OwnFailureError(
        "merge-failed",
        f"expected to merge {target}, got twice: {cause}; where it was thrown is in the log of the Spark task; end the "
        "cause and resume the table, or resync it",
        cause,
    )


def frames(error: Exception) -> list[str]:
    """Return where an error was first thrown, without its text."""
    causes = list(_causes(error))
    if not causes:
        return [f"{each.name} at {each.filename}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)]
    return [str(frame) for frame in list(causes[-1].getStackTrace())[:_FRAMES]]


def _is_common(
    error: Exception, causes: Collection[Any], named: Collection[str], texts: str, spark: SparkSession
) -> bool:
    """Return whether it is about what all tables need."""
    if isinstance(error, MemoryError) or (isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)):
        return True  # no answer of Java's: the driver's other half is gone
    if spark.sparkContext._jsc is None or spark.sparkContext._jsc.sc().isStopped():
        return True
    lacking = not _COMMON.isdisjoint(named) or any(text in texts for text in _COMMON_TEXTS)
    return lacking or any(_is_of_the_database(cause) for cause in causes)


def _is_of_the_database(cause: Any) -> bool:
    """Return whether the catalog's database failed, other than on the values of one statement (SQLSTATE 22 and 23)."""
    if not is_instance_of(SparkContext._gateway, cause, "java.sql.SQLException"):
        return False
    return not str(cause.getSQLState() or "").startswith(("22", "23"))


def _causes(error: Exception) -> Iterator[Any]:
    """Yield the Java error behind an error of Python's, then what caused it, down to the first."""
    cause = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    for _ in range(_LONGEST_CHAIN):
        if cause is None:
            return
        yield cause
        cause = cause.getCause()


def _name(cause: Any) -> str:
    return str(cause.getClass().getSimpleName())


def _condition(error: Exception) -> str:
    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""
