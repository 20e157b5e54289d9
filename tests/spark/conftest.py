"""A workbench over the session's Spark and its JDBC catalog."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conftest import LakeCatalog
from tests.spark.workbench import Workbench


@pytest.fixture
def workbench(spark: SparkSession, lake: LakeCatalog, tmp_path: Path) -> Iterator[Workbench]:
    with Workbench(spark, lake.environment(), lake.database.connect, lake.name, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared_workbench(
    spark: SparkSession, lake: LakeCatalog, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workbench]:
    """One workbench for a module, whose tables are merged together."""
    folder = tmp_path_factory.mktemp("landing")
    with Workbench(spark, lake.environment(), lake.database.connect, lake.name, folder) as made:
        yield made
