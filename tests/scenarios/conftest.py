"""Worlds for the scenarios: a database, a ledger and a namespace of the lake of the test's own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stack.postgres import Database, Server
from tests.conftest import LakeCatalog
from tests.world import World

_numbers = itertools.count(1)


@pytest.fixture
def world(
    database: Database, postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path: Path
) -> Iterator[World]:
    """A pipeline on each PostgreSQL version in turn."""
    yield from _world(database, postgres16, lake, spark, tmp_path)


@pytest.fixture
def world16(
    database16: Database, postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path: Path
) -> Iterator[World]:
    """A pipeline on the embedded server only."""
    yield from _world(database16, postgres16, lake, spark, tmp_path)


@pytest.fixture
def bare(database: Database, postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[World]:
    """A pipeline on each PostgreSQL version in turn without Spark, for scenarios that end in the landing zone."""
    yield from _world(database, postgres16, lake, None, tmp_path)


@pytest.fixture
def world15(
    postgres15: Server, postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path: Path
) -> Iterator[World]:
    """A pipeline on PostgreSQL 15 only, for scenarios whose other version is tested all the time."""
    with postgres15.temporary_database(f"only15_{next(_numbers)}") as source:
        yield from _world(source, postgres16, lake, spark, tmp_path)


@pytest.fixture
def bare16(database16: Database, postgres16: Server, lake: LakeCatalog, tmp_path: Path) -> Iterator[World]:
    """A pipeline on the embedded server without Spark, for scenarios that end in the landing zone."""
    yield from _world(database16, postgres16, lake, None, tmp_path)


def _world(
    source: Database, control: Server, lake: LakeCatalog, spark: SparkSession | None, folder: Path
) -> Iterator[World]:
    number = next(_numbers)
    with control.temporary_database(f"ledger{number}") as ledger:
        made = World(source, ledger, folder / "landing", f"w{number}", lake=lake, spark=spark)
        # a slot of this name may stay behind in no other test: names are unique in the whole cluster
        made.settings = {"source": {"slot": f"penstock_{source.name}", "publication": f"penstock_{source.name}"}}
        yield made
