"""What every Spark application does around its own work: read its plan, carry it out, write its result last.

Secrets come by the environment; the command line, which anybody may read, names files only. An error with a name is left in
a file next to the plan, since whoever submitted the application sees no more of it than that it failed.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

from pyspark.sql import SparkSession

from penstock.codec import JsonForm
from penstock.errors import LakeError, PenstockError
from penstock.jobs import driver
from penstock_spark import json_io, session

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
            result = run(spark, load(json_io.read_text(spark, plan)), os.environ)
            if result is not None and answer is not None:
                json_io.write_text(spark, answer, result.dumps())
        except PenstockError as error:
            sys.exit(_leave(spark, plan, error))

    work(given.plan, given.result if leaves_result else None)
    if keeps and given.orders:
        for order in driver.follow(lambda: json_io.read_text(spark, given.orders)):
            work(order.plan, order.result)
    spark.stop()


def _leave(spark: SparkSession, plan: str, error: PenstockError) -> int:
    """Write an error down for whoever submitted the application; return the driver's exit status, which says whether it is there."""
    _log.error("%s", error)
    try:
        json_io.write_text(spark, driver.error_file(plan), driver.dump_error(error))
    except LakeError as unwritten:
        _log.error("expected to leave that in the landing zone, too: %s", unwritten)
        return driver.UNWRITTEN
    return 1
