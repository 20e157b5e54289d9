"""Spark sessions: one for the application, and one per worker thread, each with its own settings.

Catalogs and settings belong to a session, so tables that are worked on at the same time do not share one.
"""

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from penstock.landing.store import LANDING

# Else Spark puts environment variables and settings, passwords among them, in place of `${env:...}` in a name.
AS_WRITTEN = {"spark.sql.variable.substitute": "false"}
SETTINGS = {
    **AS_WRITTEN,
    "spark.sql.caseSensitive": "true",  # two columns of a source may differ by case only
    "spark.sql.session.timeZone": "UTC",
}
SECRETS = {  # setting of the catalog -> where its value is found
    "uri": "PENSTOCK_CATALOG_URI",
    "jdbc.user": "PENSTOCK_CATALOG_USER",
    "jdbc.password": "PENSTOCK_CATALOG_PASSWORD",
}
# What the driver finds in AWS's own variables, for executors that have none; settings of the catalog itself win.
STORE_LOGIN = {
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
}
# Hadoop sets the mode of every file on a disk by a `chmod` process, and of the sums that it keeps beside it. Without the sums
# these are half, and so are the files. Spark's own readers refuse this file system, so a catalog of theirs cannot have it; and
# Hadoop's cache would hand it to them.
WITHOUT_SUMS = {
    "hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "hadoop.fs.file.impl.disable.cache": "true",
}


def start(name: str, environment: Mapping[str, str] = os.environ) -> SparkSession:
    """Start the application's session, with a scheduler that lets small tables pass large ones, and names left as they are.

    The landing zone's store is made known to Hadoop's file systems, whose settings go to executors with every read.
    """
    spark = SparkSession.builder.appName(name).config(map={"spark.scheduler.mode": "FAIR", **AS_WRITTEN}).getOrCreate()
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    for setting, value in json.loads(environment.get(LANDING, "{}")).items():
        hadoop.set(setting, value)
    return spark


@contextmanager
def worker(
    spark: SparkSession, catalog: str, environment: Mapping[str, str], *, reads: bool = True
) -> Iterator[SparkSession]:
    """Lend a session of one's own in the same application, with a catalog of its own that has its secrets already.

    The catalog keeps no table in memory: each step must see what the one before it committed. Its connections to the
    catalog's database go back at the end: left to Java's garbage collector, they would add up to all that there are.
    Spark `reads` no table of one that only commits.
    """
    session = spark.newSession()
    prefix = f"spark.sql.catalog.{catalog}"
    names = SECRETS if session.conf.get(f"{prefix}.s3.access-key-id", None) else {**STORE_LOGIN, **SECRETS}
    secrets = {f"{prefix}.{key}": environment[name] for key, name in names.items() if name in environment}
    files = {} if reads else {f"{prefix}.{name}": value for name, value in WITHOUT_SUMS.items()}
    configure(session, {**SETTINGS, **files, f"{prefix}.cache-enabled": "false"})
    open_catalog(session, catalog, secrets)
    try:
        yield session
    finally:
        manager = session._jsparkSession.sessionState().catalogManager()
        if manager.listCatalogs(java("scala.Option").empty()).contains(catalog):  # those that were used
            manager.catalog(catalog).icebergCatalog().close()


def open_catalog(session: SparkSession, catalog: str, secrets: Mapping[str, str]) -> None:
    """Make the session's catalog, and leave none of these settings in the session.

    Spark copies a session's settings into the properties of every job, and from there into event logs and its pages. A
    catalog reads its own once, and its tables bring the store's login to the executors themselves.
    """
    sessions = java("org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    activate(session)  # a catalog takes the settings of the active one
    configure(session, secrets)
    try:
        session._jsparkSession.sessionState().catalogManager().catalog(catalog)
    finally:
        for name in secrets:
            session.conf.unset(name)
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def iceberg_catalog(session: SparkSession, catalog: str) -> Any:
    """Return Iceberg's own catalog behind Spark's."""
    return session._jsparkSession.sessionState().catalogManager().catalog(catalog).icebergCatalog()


def file_io(session: SparkSession, catalog: str) -> Any:
    """Return what the session's catalog reads files with, with its settings and login; Iceberg's has no public way to it."""
    found = iceberg_catalog(session, catalog)
    field = found.getClass().getDeclaredField("io")
    field.setAccessible(True)
    return field.get(found)


def activate(session: SparkSession) -> None:
    """Make a session the active one of this thread, where Iceberg's actions look for their settings."""
    java("org.apache.spark.sql.classic.SparkSession").setActiveSession(session._jsparkSession)


def configure(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Apply settings to one session."""
    for name, value in settings.items():
        session.conf.set(name, value)


def java(name: str) -> Any:
    """Return a Java class by its full name.

    Asked for piece by piece (`jvm.org.apache...`), py4j would look in every jar for a class named as each package.
    """
    return _java_class(SparkContext._gateway, name)


@cache
def _java_class(gateway: Any, name: str) -> Any:
    return getattr(gateway.jvm, name)


def log_to_stderr() -> None:
    """Log our own lines, and keep Spark from logging the text of failed SQL."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    ours = logging.getLogger("penstock")
    ours.setLevel(logging.INFO)
    ours.addHandler(handler)
    ours.propagate = False
    logging.getLogger("SQLQueryContextLogger").disabled = True
