"""Spark from a shell: `spark-submit` as a child process, with the same job that Airflow would submit."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping

from penstock.errors import ConfigError, LakeError
from penstock.flow.spark_job import SparkJob, Submit
from penstock.jobs import driver_error


def spark_master(conn_id: str, environ: Mapping[str, str]) -> str:
    """Return the master URL of a Spark connection given as Airflow's JSON; raises ConfigError("connection-missing")."""
    name = f"AIRFLOW_CONN_{conn_id.upper()}"
    try:
        found = json.loads(environ[name])
        host, port = str(found["host"]), found.get("port")
    except (KeyError, TypeError, ValueError):
        raise ConfigError(
            "connection-missing",
            f'expected {name} to hold a Spark connection such as {{"conn_type": "spark", "host": "local[2]"}}',
        ) from None
    return f"{host}:{port}" if port else host


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
        if process.returncode == driver_error.UNWRITTEN:
            raise driver_error.unwritten(job.plan)
        if process.returncode:
            raise LakeError("spark-failed", f"expected {job.name} to end well, got exit code {process.returncode}")

    return submit
