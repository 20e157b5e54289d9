"""Connections of Airflow as Penstock's own, by way of the Postgres provider's hook: the one place that resolves them.

The hook finds them (environment, metadata, secrets backends) and asks the cloud for a token where the extra `iam` says so.
Its own extras stay here; libpq gets what libpq knows.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

from penstock.config.connections import FIELDS, Connection
from penstock.errors import ConfigError, SourceError

_SPARK = ("spark", "yarn", "k8s", "local")  # of a URI the type is the master's scheme


def connection(conn_id: str) -> Connection:
    """Return an Airflow connection as ours; raises ConfigError("connection-missing")."""
    _, found, extra = _hook_connection(conn_id)
    if not extra.pop("iam", False):
        return _ours(conn_id, found, extra)
    if found.conn_type == "postgres" and "," in f"{found.host}{extra.get('host', '')}":
        raise _wrong(conn_id, "one host with the extra iam, got several: a token is made for one host")
    login, token, port = _token(conn_id)
    found.login, found.password, found.port = login, token, port
    return replace(_ours(conn_id, found, extra), renew=partial(_password, conn_id))


def require_spark(conn_id: str) -> None:
    """Raise ConfigError("connection-missing") unless Airflow has a connection of this name that leads to a Spark master.

    The provider takes one that it does not find for a YARN cluster.
    """
    from airflow.sdk import BaseHook

    found = _defined(conn_id, lambda: BaseHook.get_connection(conn_id))
    if found.conn_type not in _SPARK:
        raise _wrong(conn_id, f"the type spark, got {found.conn_type!r}")
    if not found.host and found.conn_type != "yarn":
        raise _wrong(conn_id, "a Spark master as its host, such as local[*] or spark://host:7077, got none")


def _hook_connection(conn_id: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return the hook, its connection and the extra; the hook takes an extra that does not parse for an empty one."""
    from airflow.providers.postgres.hooks.postgres import PostgresHook  # every DAG file would pay for it

    hook = PostgresHook(postgres_conn_id=conn_id)
    found = deepcopy(_defined(conn_id, lambda: hook.connection))
    try:
        extra = json.loads(found.extra or "{}")
    except ValueError:
        raise _wrong(conn_id, "JSON in the extra, got text that does not parse") from None
    if not isinstance(extra, dict):
        raise _wrong(conn_id, "a JSON object in the extra, got something else")
    return hook, found, extra


def _defined(conn_id: str, find: Callable[[], Any]) -> Any:
    try:
        return find()
    except Exception as error:  # Airflow raises different classes per secrets backend
        raise ConfigError(
            "connection-missing",
            f"expected an Airflow connection named {conn_id}: {type(error).__name__}; define it in Airflow's UI, "
            f"in a secrets backend or as AIRFLOW_CONN_{conn_id.upper()}",
        ) from None


def _ours(conn_id: str, found: Any, extra: dict[str, Any]) -> Connection:
    return Connection.from_airflow(conn_id, {name: getattr(found, name) for name in FIELDS}, extra)


def _token(conn_id: str) -> tuple[str, str, int]:
    """Return login, token and port from AWS or Azure; a token lasts some minutes."""
    from airflow.sdk.exceptions import AirflowOptionalProviderFeatureException

    hook, found, _ = _hook_connection(conn_id)
    try:
        login, token, port = hook.get_iam_token(found)
    except AirflowOptionalProviderFeatureException as error:
        raise _wrong(conn_id, f"the provider that makes tokens for the extra iam: {error}") from None
    except Exception as error:  # boto's and Azure's own, whose words may hold what was sent
        raise SourceError(
            "source-unreachable", f"expected a token for the connection {conn_id!r}, got {type(error).__name__} instead"
        ) from None
    return login, token, port


def _password(conn_id: str) -> str:
    return _token(conn_id)[1]


def _wrong(conn_id: str, problem: str) -> ConfigError:
    return ConfigError("connection-missing", f"connection {conn_id!r}: expected {problem}")
