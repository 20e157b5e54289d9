"""Plan and result files, read and written wherever Hadoop's file systems reach."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from penstock_spark.session import java


def read_text(spark: SparkSession, uri: str) -> str:
    """Return the text of a file."""
    system, path = _locate(spark, uri)
    stream = system.open(path)
    try:
        return str(java("org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
    finally:
        stream.close()


def write_text(spark: SparkSession, uri: str, text: str) -> None:
    """Write a file whole, replacing what was there; where files have owners, for our account alone."""
    system, path = _locate(spark, uri)
    stream = system.create(path, True)
    system.setPermission(path, java("org.apache.hadoop.fs.permission.FsPermission")("600"))
    stream.write(bytearray(text.encode("utf-8")))
    stream.close()


def _locate(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    path = java("org.apache.hadoop.fs.Path")(uri)
    return path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()), path
