"""Run one use case in a process of its own, and kill that process with SIGKILL at a named step.

    python -m tests.faults.killed <verb> <module:function> <before|during|after> <occurrence>

The pipeline's coordinates come by the environment (`PIPELINE_ENV`, JSON). The product knows nothing of this: the step is found
by its name and wrapped from outside.
"""

import importlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from threading import Timer
from typing import Any

from penstock.flow.capture import run as capture
from penstock.flow.changelog import run as changelog
from penstock.flow.changelog.coverage import Interval
from penstock.flow.load import bootstrap
from penstock.flow.load import run as rebuild
from penstock.flow.maintain import run as maintain
from penstock.flow.merge import run as merge
from penstock.flow.recover import run as recover
from penstock.flow.spark_job import SparkJob
from penstock.flow.verify import run as verify
from penstock.wire.columnar import warm_up
from tests.faults.steps import owner
from tests.pipeline_env import PipelineEnv, copy_without_spark

_A_WHILE = 0.3


def arm(step: str, when: str, occurrence: int) -> None:
    """Make the nth call of a function the process's last: before its body runs, soon after it began, or when it returned."""
    found, name = owner(step)
    original: Callable[..., Any] = getattr(found, name)
    calls = iter(range(1, 1 << 30))

    def wrapped(*arguments: Any, **named: Any) -> Any:
        now = next(calls) == occurrence
        if now and when == "before":
            die()
        if now and when == "during":
            Timer(_A_WHILE, die).start()
        result = original(*arguments, **named)
        if now and when == "after":
            die()
        return result

    setattr(found, name, wrapped)


def die() -> None:
    """Kill this process, and with it the JVM of its Spark where it leads a group of its own."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def spark_elsewhere(job: SparkJob) -> None:
    """Copy in this process; have the rest carried out by the process that started this one, which watches for orders."""
    if job.application.stem == "copy_tables":
        copy_without_spark(job)
        return
    folder = Path(job.arguments[1].removeprefix("file://")).parent
    draft = folder / "wanted.draft"
    draft.write_text(json.dumps([job.application.stem, *job.arguments]))
    draft.rename(folder / "wanted")
    while not (folder / "carried-out").exists():
        time.sleep(0.05)


def spark_here(job: SparkJob) -> None:
    """Run the application itself in this process, with a Spark of its own."""
    os.environ |= job.environment
    sys.argv = [job.application.name, *job.arguments]
    importlib.import_module(job.application.stem).main()


def load_here(job: SparkJob) -> None:
    """Copy without Spark, and run what builds the tables in this process."""
    (copy_without_spark if job.application.stem == "copy_tables" else spark_here)(job)


def no_spark(job: SparkJob) -> None:
    """Be a Spark that must not be reached."""
    raise AssertionError(f"expected to be killed before {job.name}")


def run(env: PipelineEnv, verb: str) -> None:
    """Run one use case, as its DAG task would."""
    if verb == "capture":
        capture.capture(env.ctx)
    elif verb == "prepare":
        bootstrap.prepare(env.ctx)
    elif verb == "copy":
        bootstrap.copy(env.ctx, copy_without_spark)
    elif verb == "recover":
        recover.begin(env.ctx, recover.assess(env.ctx))
        recover.new_era(env.ctx)
        bootstrap.copy(env.ctx, copy_without_spark)
    elif verb == "resync":  # whatever waits
        rebuild.switch(env.ctx, rebuild.resync(env.ctx, None, spark_elsewhere), spark_elsewhere)
    elif verb.startswith("resync:"):
        tables = verb.removeprefix("resync:").split(",")
        rebuild.switch(env.ctx, rebuild.resync(env.ctx, tables, spark_elsewhere), spark_elsewhere)
    elif verb.startswith("resync here:"):
        rebuild.resync(env.ctx, verb.removeprefix("resync here:").split(","), load_here)
    elif verb.startswith("replay:"):
        request = rebuild.Replay(tuple(verb.removeprefix("replay:").split(",")))
        rebuild.switch(env.ctx, rebuild.replay(env.ctx, request, spark_elsewhere), spark_elsewhere)
    elif verb == "maintain":
        maintain.maintain(env.ctx, spark_elsewhere)
    elif verb == "maintain:here":
        maintain.maintain(env.ctx, spark_here)
    elif verb == "verify":
        verify.verify(env.ctx, merge=lambda: "nobody merges here")
    elif verb.startswith("fill:"):
        start, end = map(datetime.fromisoformat, verb.removeprefix("fill:").split("/"))
        changelog.fill(env.ctx, Interval(start, end), no_spark)
    elif verb.startswith("settle:"):
        changelog.publish(env.ctx, verb.removeprefix("settle:"))
    elif verb == "plan":
        merge.plan(env.ctx)
    elif verb.startswith("publish-last:"):
        merge.publish(env.ctx, verb.removeprefix("publish-last:"), last=True)
    else:
        merge.publish(env.ctx, verb.removeprefix("publish:"))


def main() -> None:
    """Arm the step, if one is named, and run."""
    verb, *armed = sys.argv[1:]
    env = PipelineEnv.from_json(os.environ["PIPELINE_ENV"])
    if verb == "capture":
        warm_up()
    if "FILE_LIMIT" in os.environ:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limit = int(os.environ["FILE_LIMIT"])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    if armed:
        step, when, occurrence = armed
        arm(step, when, int(occurrence))
    run(env, verb)


if __name__ == "__main__":
    main()
