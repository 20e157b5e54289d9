"""A whole pipeline for the measurements: two servers, and Spark in this process, so that JVM start stays outside."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.servers import two_servers
from stack import ports
from stack.paths import Project
from stack.servers import lake_catalog
from stack.servers.postgres import Database
from stack.spark import jars, java, spark_conf
from tests.conftest import LakeCatalog
from tests.pipeline_env import PipelineEnv

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.workbench import Workbench

ROOT = Project.here().root
sys.path.insert(0, str(ROOT / "spark_apps"))  # the measurements run Spark's applications in this process


@contextmanager
def bench_env() -> Iterator[PipelineEnv]:
    """Start a source, a control server and Spark on two cores; remove them afterwards."""
    with (
        two_servers() as (source, control, folder),
        source.temporary_database("bench") as data,
        control.temporary_database("lake") as ledger,
    ):
        lake_catalog.create_tables(ledger.dsn())
        lake = LakeCatalog(spark_conf.CATALOG, ledger, folder / "warehouse")
        spark = start_spark(lake, folder)
        try:
            yield _env(data, ledger, lake, spark, folder / "landing")
        finally:
            spark.stop()


@contextmanager
def workbench() -> Iterator[Workbench]:
    """Lend a workbench over the Spark and the catalog of a pipeline of its own, with a folder for what it lands."""
    from tests.spark.workbench import Workbench  # noqa: PLC0415  # it needs the path that is set above

    with bench_env() as env, tempfile.TemporaryDirectory() as folder:
        lake = env.lake
        assert lake is not None
        with Workbench(env.spark, lake.environment(), lake.database.connect, lake.name, Path(folder)) as made:
            yield made


def _env(source: Database, ledger: Database, lake: LakeCatalog, spark: SparkSession, landing: Path) -> PipelineEnv:
    env = PipelineEnv(source, ledger, landing, "bench", lake, session=spark)
    env.settings = {
        "capture": {"work_mem": "512MiB"},
        "copy": {"parallel": 2},
        "tables": {"include": ["public.bench"]},
    }
    return env


def start_spark(lake: LakeCatalog, scratch: Path, *, memory: str = "4g") -> SparkSession:
    """Start Spark in this process, with the settings of this project on a catalog."""
    project = Project.here()
    conf = scratch / "conf"
    wanted = spark_conf.settings(project.jars, lake.warehouse, scratch / "spark") | {
        "spark.master": "local[2]",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    }
    spark_conf.write_conf(conf, wanted)
    home = java.home(project.jre)
    if missing := jars.missing(project.jars):
        jars.fetch(missing, project.jars, home, project.logs / "fetch-jars.log")
    os.environ |= {
        "JAVA_HOME": str(home),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LOCAL_IP": ports.LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("plugins", "spark_apps", ".")),
    }
    from penstock_spark import session  # noqa: PLC0415  # Spark finds its settings by the environment set just now

    session.log_to_stderr()
    return session.start("bench")
