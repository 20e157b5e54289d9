"""Spark's settings, as a `spark-defaults.conf` and a `log4j2.properties` without a secret in them.

The catalog's address, user and password reach a driver by environment, and our applications set them there. Jars go
on the driver's class path: `spark.jars` would copy 48 MB per run, and JDBC would not find its driver.
"""

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from stack.atomic_write import write_whole
from stack.spark import class_archive, jars, java

CATALOG = "lake"

LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.stdout.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{short}
# Said once per start on every machine without Hadoop's native code.
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
# Said once per start, of a setting that is meant: only a cluster's manager overrides it.
logger.conf.name = org.apache.spark.SparkConf
logger.conf.level = error
"""


def home() -> Path:
    """Return the folder of the installed Spark."""
    spec = find_spec("pyspark")
    return Path((spec.submodule_search_locations or [""])[0]) if spec else Path()


def class_path(jar_folder: Path) -> str:
    """Return the driver's class path: Spark's own jars before its folder of settings, which no archive may hold."""
    return os.pathsep.join([str(home() / "jars" / "*"), jars.class_path(jar_folder.resolve())])


def uri(folder: Path) -> str:
    """Return the address of a local folder as Hadoop and Iceberg write it (nothing is percent-encoded)."""
    return f"file://{folder}"


def settings(jar_folder: Path, warehouse: Path, scratch: Path) -> dict[str, str]:
    """Return the settings of every Spark application of this machine, secrets excepted."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    return {
        "spark.driver.extraClassPath": class_path(jar_folder),
        "spark.driver.extraJavaOptions": f"{java.SHORT_LIVED}{class_archive.options(jar_folder.resolve())}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(scratch),
        "spark.redaction.regex": "(?i)secret|password|token|access[.-]?key",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.variable.substitute": "false",  # else a name like `${env:HOME}` is replaced by what it names
        "spark.sql.artifact.isolation.enabled": "false",  # a class loader per session, for artifacts that are never added
        "spark.sql.warehouse.dir": uri(warehouse),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.init-catalog-tables": "false",
        f"{catalog}.warehouse": uri(warehouse),
    }


def write_conf(folder: Path, wanted: Mapping[str, str]) -> None:
    """Write the folder that `SPARK_CONF_DIR` names."""
    lines = (f"{name} {value}" for name, value in wanted.items())
    write_whole(folder / "spark-defaults.conf", "\n".join(lines) + "\n")
    write_whole(folder / "log4j2.properties", LOG4J)
