"""Whose failure it is when work on a table ends with an error: the table's own, or that of the whole run, and under which name.

What every table needs (memory, disk, network, stores, the catalog's database, Spark itself) fails the run, which is retried.
The text of a Spark error may quote values, so nothing of it is passed on: only classes, Spark's condition, a file's name.
"""

import logging
import re
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from penstock.conditions import Directive
from penstock.engine.failure import EngineFailure, file_of
from penstock.errors import LakeError, PenstockError
from penstock.jobs.plans import CopyPlan, LakePlan
from penstock.store_trouble import Trouble, trouble_of, trouble_of_os

_LONGEST_CHAIN = 20
_FRAMES = 8
# The classes of Java, without their packages.
_MACHINE = frozenset(
    {
        *("OutOfMemoryError", "SparkOutOfMemoryError", "NoClassDefFoundError", "ClassNotFoundException"),
        *("NoSuchMethodError", "InterruptedException", "UncheckedInterruptedException", "ClosedByInterruptException"),
        *("FetchFailedException",),
    }
)
_MACHINE_TEXTS = ("ExecutorLostFailure", "SparkContext was shut down", "stopped SparkContext")
# A catalog behind HTTP answers by these.
_CATALOG = frozenset(
    {"ServiceUnavailableException", "ServiceFailureException", "NotAuthorizedException", "RESTException"}
)
_FILES = frozenset(
    {
        *("NotFoundException", "FileNotFoundException", "NoSuchFileException", "NoSuchKeyException"),
        *("AccessDeniedException", "RuntimeIOException", "EOFException", "JsonParseException"),
        *("ValueInstantiationException", "AvroRuntimeException", "InvalidAvroMagicException"),
        *("ParquetDecodingException", "ParquetCryptoRuntimeException", "ForbiddenException", "S3Exception"),
        *("BlockMissingException", "ChecksumException"),
    }
)
_FILE_CONDITIONS = ("FAILED_READ_FILE", "CANNOT_READ_FILE")
_CLASS = re.compile(r"\b(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error))\b")
_SCRATCH = re.compile(r"org\.apache\.spark\.(?:shuffle|storage|util\.collection)\.")

Result = TypeVar("Result")

_log = logging.getLogger("penstock.spark")


class OwnFailureError(LakeError):
    """One table's own failure without a kind; `cause` names the error's class and condition.

    One that is `refused` is its own only if the store takes and gives other files.
    """

    def __init__(self, slug: str, message: str, cause: str, *, refused: bool = False) -> None:
        super().__init__(slug, message)
        self.cause = cause
        self.refused = refused


@dataclass(frozen=True)
class _Known:
    """Hold what may be said of an error: its class, the file it is about, and what is the matter with what it needs."""

    kind: str
    file: str | None = None
    unreadable: bool = False
    trouble: Trouble | None = None
    of_the_machine: bool = False
    of_the_catalog: bool = False
    in_scratch: bool = False
    in_landing: bool = False

    @property
    def where(self) -> str:
        """Return the class, and at which file."""
        return f"{self.kind}{f' at {self.file}' if self.file else ''}"


def reason_to_pause(error: Exception, session: SparkSession, target: str, landed: Collection[str]) -> LakeError | None:
    """Return the reason for which one table pauses, whatever its kind, or None where the error concerns the whole run."""
    if isinstance(error, PenstockError):
        return error if isinstance(error, LakeError) and error.directive is Directive.PAUSE else None
    return own_failure(error, session, target, landed)


def own_failure(
    error: Exception, session: SparkSession, target: str, landed: Collection[str]
) -> OwnFailureError | None:
    """Return what an error without a name says of one table, or None where it concerns the whole run.

    `landed` are the landing files that were read: one of them that is gone is a case for the next plan, which halts. A file
    that a store refuses is the table's own, if the store takes others (`penstock_spark.stores`).
    """
    known = _known(error, session)
    if known.of_the_machine or known.of_the_catalog or known.trouble in (Trouble.BUSY, Trouble.FULL):
        return None
    if known.file and known.file.rpartition("/")[2] in {each.rpartition("/")[2] for each in landed}:
        return None
    _log.error("%s: %s in\n  %s", target, known.kind, "\n  ".join(frames(error)))
    if known.unreadable or known.trouble:
        return OwnFailureError(
            "lake-unreadable",
            f"expected to read and write the lake's files of {target}, got: {known.where}; put back what is gone and resume "
            "the table, or resync it",
            known.kind,
            refused=known.trouble is Trouble.REFUSED,
        )
    return OwnFailureError(
        "merge-failed",
        f"expected to merge {target}, got: {known.kind}; where it was thrown is in the log of the Spark task; end the "
        "cause and resume the table, or resync it",
        known.kind,
    )


def named(
    run: Callable[[SparkSession, Any, Mapping[str, str]], Result],
) -> Callable[[SparkSession, Any, Mapping[str, str]], Result]:
    """Let an application's work end under the name of what concerns the whole run, where that is known."""

    @wraps(run)
    def work(spark: SparkSession, plan: Any, environment: Mapping[str, str]) -> Result:
        try:
            return run(spark, plan, environment)
        except PenstockError:
            raise
        except Exception as error:
            known = of_the_run(error, spark, plan)
            if known is None:
                raise
            raise known from None

    return work


def of_the_run(error: Exception, spark: SparkSession, plan: CopyPlan | LakePlan) -> LakeError | None:
    """Return an error that concerns the whole run under its name, None for one that has none."""
    known = _known(error, spark, plan.pipeline)
    slug, advice = _slug(known)
    if slug is None:
        return None
    _log.error("%s in\n  %s", known.kind, "\n  ".join(frames(error)))
    trouble = f": {known.trouble.value}" if known.trouble and not known.of_the_catalog else ""
    return LakeError(slug, f"expected {_NEEDED[slug]}, got {known.where}{trouble}; {advice}")


@contextmanager
def landing(spark: SparkSession, uri: str, slug: str) -> Iterator[None]:
    """Raise what keeps a file of the landing zone from being read or written under its name, else under `slug`."""
    try:
        yield
    except PenstockError:
        raise
    except Exception as error:
        known = _known(error, spark)
        found = _slug(replace(known, in_landing=True, in_scratch=False))[0] or slug
        what = known.trouble.value if known.trouble else "its log has more"
        expected = "to take" if slug == "landing-unwritable" else "to give"
        raise LakeError(found, f"expected the landing zone {expected} {uri}, got {known.kind}: {what}") from None


def trouble(error: Exception, spark: SparkSession) -> Trouble | None:
    """Return what is the matter with a store, where an error is about that."""
    return _known(error, spark).trouble


_NEEDED = {
    "catalog-unreachable": "the lake's catalog to answer",
    "landing-unreachable": "the landing zone to answer",
    "landing-unwritable": "the landing zone to take a file",
    "lake-unreachable": "the lake's store to answer",
    "lake-unwritable": "the lake's store to take a file",
    "spark-failed": "Spark to have what it works with",
}


def _slug(known: _Known) -> tuple[str | None, str]:
    again = "nothing was published: it is tried again"
    if known.of_the_catalog:
        return "catalog-unreachable", again
    if known.trouble is Trouble.FULL and known.in_scratch:
        return "spark-failed", "make room in the folder of Spark's shuffle files (spark.local.dir)"
    if known.trouble is Trouble.FULL:
        return f"{'landing' if known.in_landing else 'lake'}-unwritable", f"make room; {again}"
    if known.trouble is not None:
        return f"{'landing' if known.in_landing else 'lake'}-unreachable", again
    return ("spark-failed", "its log has more") if known.of_the_machine else (None, "")


def frames(error: Exception) -> list[str]:
    """Return where an error was first thrown, without its text."""
    causes = list(_causes(error))
    if not causes:
        return [f"{each.name} at {each.filename}:{each.lineno}" for each in traceback.extract_tb(error.__traceback__)]
    return [str(frame) for frame in list(causes[-1].getStackTrace())[:_FRAMES]]


def _known(error: Exception, spark: SparkSession, pipeline: str = "") -> _Known:
    if spark.sparkContext._jsc is None or spark.sparkContext._jsc.sc().isStopped():
        return _Known("a Spark that has ended", of_the_machine=True)
    if isinstance(error, EngineFailure):
        scratch = error.trouble is Trouble.FULL and error.file is None
        return _Known(
            error.kind,
            error.file,
            error.unreadable,
            error.trouble,
            in_scratch=scratch,
            in_landing=_in_landing(error.file or "", pipeline),
        )
    if isinstance(error, OSError):
        text = str(error)
        file = str(error.filename or "") or file_of(text)
        where = _in_landing(f"{file} {text}", pipeline)
        return _Known(type(error).__name__, file, file is not None, trouble_of_os(error), in_landing=where)
    if isinstance(error, MemoryError) or (isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)):
        return _Known(type(error).__name__, of_the_machine=True)  # no answer of Java's: the driver's other half is gone
    return _of_java(error, pipeline)


def _of_java(error: Exception, pipeline: str) -> _Known:
    """Judge an error of Java's by all that caused it: the classes, and what they say of the stores."""
    causes = list(_causes(error))
    names, condition = [_name(cause) for cause in causes], _condition(error)
    texts = "\n".join(str(cause.getMessage()) for cause in causes)
    of_files = condition.startswith(_FILE_CONDITIONS)
    # what failed in a task of Spark's is named in the driver's text only
    everything = [*names, *_CLASS.findall(texts)]
    missing = [name for name in everything if name in _FILES]
    # an error with a condition of Spark's own may quote a row, and a row may say anything
    words = everything if condition and not of_files else [*everything, texts]
    kind = (missing or names or [type(error).__name__])[-1]
    return _Known(
        f"{kind}, {condition}" if condition else kind,
        file_of(texts),
        bool(missing) or of_files,
        trouble_of(words),
        of_the_machine=not _MACHINE.isdisjoint(everything) or any(text in texts for text in _MACHINE_TEXTS),
        of_the_catalog=not _CATALOG.isdisjoint(names) or any(_is_of_the_database(cause) for cause in causes),
        in_scratch=bool(_SCRATCH.search(texts) or any(map(_SCRATCH.search, frames(error)))),
        in_landing=_in_landing(texts, pipeline),
    )


def _in_landing(text: str, pipeline: str) -> bool:
    """Return whether a text names a place of the landing zone."""
    return bool(re.search(rf"\b{re.escape(pipeline)}/(?:windows|copies|runs)/", text)) if pipeline else False


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
