"""The Airflow connections of the local stack, as the environment variables in which Airflow looks for them."""

import json
from urllib.parse import quote

from stack.ports import LOOPBACK
from stack.secrets import Secrets
from stack.servers.databases import CAPTURE, PENSTOCK, READER, SHOP


def environment(source_port: int, control_port: int, secrets: Secrets) -> dict[str, str]:
    """Return `AIRFLOW_CONN_*` for source and its reader, ledger, catalog and Spark, and PyIceberg's own variables for readers of the lake."""
    source = _postgres(source_port, SHOP, CAPTURE, secrets.penstock_capture)
    reader = _postgres(source_port, SHOP, READER, secrets.penstock_reader)
    ledger = _postgres(control_port, PENSTOCK, PENSTOCK, secrets.penstock)
    return {
        "AIRFLOW_CONN_PENSTOCK_SOURCE": source,
        "AIRFLOW_CONN_PENSTOCK_READER": reader,
        "AIRFLOW_CONN_PENSTOCK_LEDGER": ledger,
        "AIRFLOW_CONN_PENSTOCK_CATALOG": ledger,
        "AIRFLOW_CONN_PENSTOCK_SPARK": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "PYICEBERG_CATALOG__LAKE__TYPE": "sql",
        "PYICEBERG_CATALOG__LAKE__URI": (
            f"postgresql+psycopg2://{PENSTOCK}:{quote(secrets.penstock)}@{LOOPBACK}:{control_port}/{PENSTOCK}"
        ),
    }


def _postgres(port: int, database: str, user: str, password: str) -> str:
    return json.dumps(
        {
            "conn_type": "postgres",
            "host": LOOPBACK,
            "port": port,
            "schema": database,
            "login": user,
            "password": password,
        }
    )
