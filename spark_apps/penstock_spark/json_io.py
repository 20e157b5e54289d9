"""Plan and result files, read and written wherever Hadoop's file systems reach."""

from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession

from penstock.landing.atomic_file import PART
from penstock_spark.failures import landing
from penstock_spark.session import java


def read_text(spark: SparkSession, uri: str) -> str:
    """Return the text of a file."""
    with landing(spark, uri, "landing-unreachable"):
        system, path = _locate(spark, uri)
        stream = system.open(path)
        try:
            return str(java("org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
        finally:
            stream.close()


def write_text(spark: SparkSession, uri: str, text: str) -> None:
    """Write a file that appears under its name when it is whole, in place of one that was there; for our account alone.

    Raises LakeError("landing-unwritable" | "landing-unreachable"), and leaves no half of it.
    """
    with landing(spark, uri, "landing-unwritable"):
        system, path = _locate(spark, uri)
        draft = path.suffix(PART)
        try:
            stream = system.create(draft, True)
            system.setPermission(draft, java("org.apache.hadoop.fs.permission.FsPermission")("600"))
            stream.write(bytearray(text.encode("utf-8")))
            stream.close()
            system.delete(path, False)
            if not system.rename(draft, path):
                raise OSError(f"expected to write {uri}, could not rename its draft to it")
        except Exception:
            with suppress(Exception):  # what could not be written need not be
                system.delete(draft, False)
            raise


def _locate(spark: SparkSession, uri: str) -> tuple[Any, Any]:
    path = java("org.apache.hadoop.fs.Path")(uri)
    return path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()), path
