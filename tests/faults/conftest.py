"""Pipelines whose processes are killed, and a source that may be killed as well: a durable server of the module's own."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Protocol

import pytest
from pyspark.sql import SparkSession

from stack.servers.binaries import Binaries
from stack.servers.postgres import Database, Server
from tests.conftest import LakeCatalog, NewServer
from tests.env_fixtures import Around, around, real_submit, shell_with_spark
from tests.pipeline_env import PipelineEnv, own_names

__all__ = ["around", "real_submit", "shell_with_spark"]

_numbers = itertools.count(1)


class NewPipeline(Protocol):
    """Bring up a pipeline on a source of its own, with these tables; without any, nothing has been done to it yet.

    Its ledger and catalog are one database, as by default; with `apart` they are two, and a cut is two transactions.
    """

    def __call__(
        self, name: str, tables: str = "", *, source: Database | None = None, apart: bool = False, **settings: Any
    ) -> PipelineEnv: ...


@pytest.fixture(scope="module")
def new_pipeline(
    postgres16: Server, lake: LakeCatalog, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NewPipeline]:
    """A function that makes pipelines with the Spark of this process; they last as long as the module's tests."""
    with ExitStack() as databases:

        def make(
            name: str, tables: str = "", *, source: Database | None = None, apart: bool = False, **settings: Any
        ) -> PipelineEnv:
            def database(name: str) -> Database:
                return databases.enter_context(postgres16.temporary_database(name))

            source = source or database(name)
            ledger = database(f"{name}_ledger") if apart else lake.database
            made = PipelineEnv(source, ledger, tmp_path_factory.mktemp(name) / "landing", name, lake, session=spark)
            made.settings = own_names(source) | settings
            if tables:
                made.bootstrap(tables)
            return made

        yield make


@pytest.fixture
def number() -> int:
    """A number of the test's own, for what it adds to a pipeline that many tests share."""
    return next(_numbers)


@pytest.fixture(scope="module")
def fragile(new_server: NewServer, binaries16: Binaries) -> Server:
    """A durable source that the tests may stop, crash and restart."""
    return new_server(binaries16, {"max_wal_senders": "20", "checkpoint_timeout": "1h"})


@pytest.fixture
def doomed(fragile: Server, around: Around, number: int) -> Iterator[PipelineEnv]:
    """A pipeline on the fragile source, without Spark."""
    with fragile.temporary_database(f"doomed{number}") as source:
        yield from around.env_on(source)
