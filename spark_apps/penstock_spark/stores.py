"""The stores of a merge as the engine's tasks reach them: with the logins that the landing zone and the catalog have already."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from pyarrow import fs
from pyspark.sql import SparkSession

from penstock.engine.files import Files, Store
from penstock.engine.task import probe
from penstock.jobs.plans import LakePlan
from penstock.lake.properties import is_place
from penstock.landing import store
from penstock_spark.iceberg_table import IcebergTable
from penstock_spark.session import STORE_LOGIN

REACHED = ("", "file", "s3", "s3a")
"""The schemes of locations that a task reaches: the disk, and S3."""
_OPTIONS = {
    "s3.access-key-id": "access_key",
    "s3.secret-access-key": "secret_key",
    "s3.session-token": "session_token",
    "client.region": "region",
    "s3.region": "region",
}


def task_files(session: SparkSession, plan: LakePlan, environment: Mapping[str, str], location: str) -> Files:
    """Return the files that a task for a table at this location needs; logins may be among them: never write them down."""
    known = {**os.environ, **environment}
    landing = None
    if urlsplit(plan.landing_uri).scheme in ("s3", "s3a"):
        landing, _, _ = store.resolve(plan.landing_uri, store.given(plan.landing_options, known), {})
    return replace(lake_files(session, plan.catalog, known, location), landing=Store("landing", landing))


def lake_files(session: SparkSession, catalog: str, environment: Mapping[str, str], location: str) -> Files:
    """Return the lake's files alone, for a table at this location; logins may be among them."""
    known = {**os.environ, **environment}
    lake = _lake(session, catalog, known) if urlsplit(location).scheme in ("s3", "s3a") else None
    return Files(lake=Store("lake", lake))


def _lake(session: SparkSession, catalog: str, environment: Mapping[str, str]) -> fs.FileSystem:
    """Return the file system of a catalog's `s3.*` settings, or of AWS's own variables."""

    def setting(name: str) -> str | None:
        found: str | None = session.conf.get(f"spark.sql.catalog.{catalog}.{name}", None)
        return found or environment.get(STORE_LOGIN.get(name, ""))

    options: dict[str, Any] = {option: value for name, option in _OPTIONS.items() if (value := setting(name))}
    if endpoint := setting("s3.endpoint"):
        parts = urlsplit(endpoint)
        options |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    return store.s3(**options)


def require_working(
    session: SparkSession, catalog: str, environment: Mapping[str, str], there: IcebergTable | None
) -> None:
    """See that Spark computes, the engine works, and the lake's store takes and gives a file; raises what fails.

    The file is written into the folder of the table that is `there`, as the catalog has shown it, or into the warehouse's.
    """
    session.range(2).count()
    folder = there.folder if there else session.conf.get(f"spark.sql.catalog.{catalog}.warehouse", "")
    if is_place(folder):
        probe(lake_files(session, catalog, environment, folder), folder)
