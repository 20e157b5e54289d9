"""Spark from a shell: `spark-submit` as a child process, with the same job that Airflow would submit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

from penstock.errors import LakeError
from penstock.flow.spark_job import SparkJob, Submit


def spark_submit(master: str, progress: Callable[[str], None]) -> Submit:
    """Return a way to run a job on this Spark master; the application's own lines become progress."""

    def submit(job: SparkJob) -> None:
        command = ["spark-submit", "--master", master, "--name", job.name, "--driver-memory", job.driver_memory]
        for key, value in job.conf.items():
            command += ["--conf", f"{key}={value}"]
        command += ["--py-files", str(job.py_files), str(job.application), *job.arguments]
        with subprocess.Popen(
            command, env={**os.environ, **job.environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            for line in process.stdout or ():
                progress(line.rstrip())
        if process.returncode:
            raise LakeError("spark-failed", f"expected {job.name} to end well, got exit code {process.returncode}")

    return submit
