"""One Spark application to submit, described once for the shell and for Airflow, and looked at every other second while it is at work.

Secrets travel only in `environment`: never on the command line, in a plan file or in Spark's configuration.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from penstock import package
from penstock.codec import JsonForm
from penstock.errors import LakeError, PenstockError
from penstock.flow.context import Context
from penstock.jobs import driver
from penstock.landing import store
from penstock.landing.store import LANDING
from penstock.landing.zone import LandingZone

EVERY_SECONDS = 2.0
Done = tuple[int, int, int | None]
"""How much is done, how much it is, and the rows done where they are counted: what `ctx.stage` takes."""


@dataclass(frozen=True, slots=True)
class SparkJob:
    """Describe a submission: which application, with which plan (a file of the landing zone), arguments and environment."""

    name: str
    application: Path
    plan: str
    arguments: tuple[str, ...]
    py_files: Path
    driver_memory: str
    conf: Mapping[str, str]
    environment: Mapping[str, str] = field(repr=False)


Answer = TypeVar("Answer", bound=JsonForm)
Submit = Callable[[SparkJob], None]
"""Run a job to its end; raises LakeError("spark-failed") when it ends without success. `carried_out` names the error."""


def carried_out(ctx: Context, submit: Submit, job: SparkJob, zone: LandingZone | None = None) -> None:
    """Run a job, whose plan lies in the landing zone or in this one, to its end.

    Raises the error by which its driver ended, or LakeError("spark-failed") where that has no name.
    """
    try:
        submit(job)
    except LakeError as error:
        if error.slug != "spark-failed":
            raise
        raise named_error(zone or ctx.landing, job.plan) or error from None


@contextmanager
def watched(ctx: Context, what: str, look: Callable[[], Done | None]) -> Iterator[None]:
    """Tell `ctx.stage` how far a work is for as long as the block runs, and that it is done after it.

    `look` returns None before there is anything to see; a zone that does not answer stops nothing.
    """
    if not ctx.is_watched:
        yield
        return
    over, total = threading.Event(), 0

    def note() -> None:
        nonlocal total
        with suppress(LakeError):
            if (found := look()) is not None:
                done, total, rows = found
                ctx.stage(what, done, total, rows)

    def keep_noting() -> None:
        while not over.wait(EVERY_SECONDS):
            note()

    note()
    watcher = threading.Thread(target=keep_noting, name=f"penstock: {what}", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    ctx.stage(what, total, total)


def named_error(zone: LandingZone, plan: str) -> PenstockError | None:
    """Return the error with a name by which the driver of a plan ended, None where it left none."""
    path = driver.error_file(plan)
    return driver.load_error(zone.read_text(path)) if zone.exists(path) else None


def plan_frame(ctx: Context, attempt: str, era: int = 1) -> dict[str, Any]:
    """Return what every plan on lake tables says (`LakePlan`)."""
    pipeline = ctx.pipeline
    return {
        "pipeline": ctx.name,
        "attempt": attempt,
        "catalog": pipeline.lake.catalog,
        "era": era,
        "parallel_tables": pipeline.spark.parallel_tables,
        "table_properties": dict(pipeline.lake.properties),
        "landing_uri": pipeline.landing.uri,
        "landing_options": dict(pipeline.landing.options),
        "task_memory": pipeline.spark.task_memory,
    }


def answer(zone: LandingZone, path: str, kind: type[Answer]) -> Answer:
    """Return Spark's result at a path; raises LakeError("spark-failed") where there is none."""
    if not zone.exists(path):
        raise LakeError("spark-failed", f"expected Spark's result at {path} in the landing zone, found none")
    return kind.loads(zone.read_text(path))


def describe(
    ctx: Context,
    application: str,
    plan: str,
    secrets: Mapping[str, str],
    *,
    result: str | None = None,
    orders: str | None = None,
    zone: LandingZone | None = None,
) -> SparkJob:
    """Return the job that runs `spark_apps/<application>.py` for this pipeline.

    `plan` is the file of what it does and `result` that of its answer, as paths in the landing zone; with `orders`
    it is kept, and follows that file. They lie in another `zone` where it is given.
    """
    spark, settings, place = ctx.pipeline.spark, ctx.pipeline.landing, zone or ctx.landing
    reached = store.hadoop(settings.uri, settings.options, {**os.environ, **ctx.environment})
    return SparkJob(
        name=f"penstock:{ctx.name}:{application}",
        application=ctx.home / "spark_apps" / f"{application}.py",
        plan=plan,
        arguments=(
            *("--plan", place.uri(plan)),
            *(("--result", place.uri(result)) if result is not None else ()),
            *(("--orders", place.uri(orders)) if orders is not None else ()),
        ),
        py_files=package.location(ctx.home, ctx.environment),
        driver_memory=spark.driver_memory,
        conf=dict(spark.conf),
        environment={**secrets, LANDING: json.dumps(reached)},
    )


def catalog_secrets(ctx: Context) -> dict[str, str]:
    """Return what the driver needs to open the lake's catalog."""
    catalog = ctx.catalog
    return {
        "PENSTOCK_CATALOG_URI": catalog.jdbc_url(),
        "PENSTOCK_CATALOG_USER": catalog.user,
        "PENSTOCK_CATALOG_PASSWORD": catalog.secret,
    }
