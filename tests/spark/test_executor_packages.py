"""An executor of a real Spark standalone cluster whose Python lacks our packages: the run ends by their names."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path

import pytest

from penstock import package
from stack import ports
from stack.paths import Project
from stack.spark import spark_conf
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.spark]

APPLICATION = """
import sys
from functools import partial
from pyspark import SparkContext
from penstock.errors import LakeError
from penstock_spark.executors import Executors

with SparkContext(sys.argv[1], pyFiles=[sys.argv[2]]) as context:
    try:
        print(Executors(context)([partial(int, "1")]))
    except LakeError as error:
        print(error.slug, error.message)
"""


@pytest.fixture
def master(java_home: Path, tmp_path: Path) -> Iterator[str]:
    """A master with one worker."""
    address = f"spark://127.0.0.1:{ports.choose()}"
    program = str(spark_conf.home() / "bin" / "spark-class")
    listen = ("--host", "127.0.0.1", "--webui-port", "0")
    parts = [
        ("master.Master", *listen, "--port", address.rpartition(":")[2]),
        ("worker.Worker", *listen, "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path), address),
    ]
    with ExitStack() as running:
        for part, *arguments in parts:
            log = running.enter_context((tmp_path / f"{part}.log").open("w+"))
            command = [program, f"org.apache.spark.deploy.{part}", *arguments]
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment(java_home))
            running.callback(process.wait)
            running.callback(process.terminate)
        wait_until(lambda: "Successfully registered" in (tmp_path / "worker.Worker.log").read_text())
        yield address


def environment(java_home: Path) -> dict[str, str]:
    return os.environ | {"JAVA_HOME": str(java_home), "SPARK_LOCAL_IP": "127.0.0.1"}


def test_an_executor_without_duckdb_ends_the_run_and_says_what_it_lacks_and_where(
    master: str, java_home: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    library = tmp_path / "penstock.zip"
    package.build(Project.here().root, library)
    pythons = {"PYSPARK_PYTHON": str(bare / "bin" / "python"), "PYSPARK_DRIVER_PYTHON": sys.executable}

    done = subprocess.run(
        [sys.executable, "-c", APPLICATION, master, str(library)],
        env=environment(java_home) | pythons,
        capture_output=True,
        text=True,
        check=True,
    )

    said = done.stdout.splitlines()[-1]
    assert said.startswith(
        "spark-failed expected the Python of every executor to have the driver's packages, got executor "
    )
    assert (
        f"({bare / 'bin' / 'python'}) without duckdb {metadata.version('duckdb')}, fsspec, mmh3, numpy, pyarrow, pyroaring; install"
        in said
    )
