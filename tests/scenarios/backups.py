"""Backups of what a pipeline stands on: each can be taken, and put back while everything else goes on."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from psycopg import sql

from tests.pipeline_env import PipelineEnv

PutBack = Callable[[], None]


def warehouse(env: PipelineEnv) -> Path:
    """Return the folder of the pipeline's lake."""
    assert env.lake is not None
    return env.lake.warehouse / env.name


def of_ledger(env: PipelineEnv) -> PutBack:
    """Save the ledger's database as a whole."""
    server, name = env.ledger.server, env.ledger.name
    saved = f"{name}_saved"
    _copy(server, name, saved)

    def put_back() -> None:
        _copy(server, saved, name)
        _execute(server, sql.SQL("drop database {}").format(sql.Identifier(saved)))

    return put_back


def of_catalog(env: PipelineEnv, called: str = "saved") -> PutBack:
    """Save the catalog's tables and namespaces of the pipeline; other tests have theirs in the same database."""
    assert env.lake is not None
    database, saved = env.lake.database, f"{called}_{env.name}"
    mine = f"table_namespace = '{env.name}' or table_namespace like '{env.name}.%'"
    database.execute(f"create table {saved} as select * from iceberg_tables where {mine}")

    def put_back() -> None:
        database.execute(
            f"begin; delete from iceberg_tables where {mine}; insert into iceberg_tables select * from {saved}; "
            f"drop table {saved}; commit"
        )

    return put_back


def of_folder(folder: Path) -> PutBack:
    """Save a folder: the landing zone, or the files of the lake."""
    saved = folder.with_name(f"{folder.name}.saved")
    shutil.copytree(folder, saved)

    def put_back() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        saved.rename(folder)

    return put_back


def _copy(server: Any, name: str, copy: str) -> None:
    named = {"copy": sql.Identifier(copy), "name": sql.Identifier(name)}
    _execute(server, sql.SQL("drop database if exists {copy} with (force)").format(**named))
    _execute(server, sql.SQL("create database {copy} template {name}").format(**named))


def _execute(server: Any, statement: sql.Composed) -> None:
    with server.connect() as connection:
        connection.execute(statement)
