"""What every Spark application does around its own work: read its plan, carry it out, write its result last.

Secrets come by the environment; the command line, which anybody may read, names files only.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from pyspark.sql import SparkSession

from penstock_spark import json_io, session

Plan = TypeVar("Plan")


class Result(Protocol):
    """What is left for whoever submitted the application."""

    def dumps(self) -> str:
        """Return it as JSON."""


def carry_out(
    name: str,
    description: str | None,
    load: Callable[[str], Plan],
    run: Callable[[SparkSession, Plan, Mapping[str, str]], Result | None],
    *,
    leaves_result: bool = True,
) -> None:
    """Run an application's work on the plan at `--plan`, and write to `--result` what it returns, where it leaves any."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--plan", required=True)
    if leaves_result:
        arguments.add_argument("--result", required=True)
    given = arguments.parse_args()
    session.log_to_stderr()
    spark = session.start(name)
    result = run(spark, load(json_io.read_text(spark, given.plan)), os.environ)
    if result is not None:
        json_io.write_text(spark, given.result, result.dumps())
    spark.stop()
