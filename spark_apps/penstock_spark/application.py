"""What every Spark application does around its own work: read its plan, carry it out, write its result last.

Secrets come by the environment; the command line, which anybody may read, names files only. An error with a name is left in
a file next to the plan, since whoever submitted the application sees no more of it than that it failed.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from penstock.codec import JsonForm
from penstock.errors import LakeError, PenstockError
from penstock.jobs import driver
from penstock.landing.atomic_file import PART
from penstock_spark import session
from penstock_spark.failures import landing
from penstock_spark.session import java

Plan = TypeVar("Plan")
_log = logging.getLogger("penstock.application")


def carry_out(
    name: str,
    description: str | None,
    load: Callable[[str], Plan],
    run: Callable[[SparkSession, Plan, Mapping[str, str]], JsonForm | None],
    *,
    leaves_result: bool = True,
    keeps: bool = False,
) -> None:
    """Run an application's work on the plan at `--plan`, and write to `--result` what it returns, where it leaves any.

    One that `keeps` goes on with the plans that the file at `--orders` brings, where it is given.
    """
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--plan", required=True)
    if leaves_result:
        arguments.add_argument("--result", required=True)
    if keeps:
        arguments.add_argument("--orders")
    given = arguments.parse_args()
    session.log_to_stderr()
    spark = session.start(name)

    def work(plan: str, answer: str | None) -> None:
        try:
            result = run(spark, load(read_text(spark, plan)), os.environ)
            if result is not None and answer is not None:
                write_text(spark, answer, result.dumps())
        except PenstockError as error:
            sys.exit(_leave(spark, plan, error))

    work(given.plan, given.result if leaves_result else None)
    if keeps and given.orders:
        for order in driver.follow(lambda: read_text(spark, given.orders)):
            work(order.plan, order.result)
    spark.stop()


def _leave(spark: SparkSession, plan: str, error: PenstockError) -> int:
    """Write an error down for whoever submitted the application; return the driver's exit status, which says whether it is there."""
    _log.error("%s", error)
    try:
        write_text(spark, driver.error_file(plan), driver.dump_error(error))
    except LakeError as unwritten:
        _log.error("expected to leave that in the landing zone, too: %s", unwritten)
        return driver.UNWRITTEN
    return 1


def read_text(spark: SparkSession, uri: str) -> str:
    """Return the text of a file."""
    with landing(spark, uri, "landing-unreachable"):
        system, path = _locate(spark, uri)
        stream = system.open(path)
        try:
            return str(java("org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
        finally:
            stream.close()


def write_text(spark: SparkSession, uri: str, text: str) -> None:
    """Write a file that appears under its name when it is whole, in place of one that was there; for our account alone.

    Raises LakeError("landing-unwritable" | "landing-unreachable"), and leaves no half of it.
    """
    with landing(spark, uri, "landing-unwritable"):
        system, path = _locate(spark, uri)
        draft = path.suffix(PART)
        try:
            stream = system.create(draft, True)
            system.setPermission(draft, java("org.apache.hadoop.fs.permission.FsPermission")("600"))
            stream.write(bytearray(text.encode("utf-8")))
            stream.close()
            system.delete(path, False)
            if not system.rename(draft, path):
                raise OSError(f"expected to write {uri}, could not rename its draft to it")
        except Exception:
            with suppress(Exception):  # what could not be written need not be
                system.delete(draft, False)
            raise


def _locate(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    path = java("org.apache.hadoop.fs.Path")(uri)
    return path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()), path
