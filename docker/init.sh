#!/bin/sh
# Brings the control database to what the other services expect. Safe to repeat: each step looks at what is there.
set -eu

airflow db migrate
airflow pools set penstock_source 4 "Tasks that read a source database"
airflow pools set penstock_spark 1 "Tasks that run a Spark driver on this machine"
airflow pools set penstock_backfill 1 "The same, of resync, replay and changelog: no merge waits for them"

PYTHONPATH="$PENSTOCK_HOME:$PENSTOCK_HOME/plugins" with-secrets python - <<'PYTHON'
import json
import os
from pathlib import Path

from penstock.config.connections import Connection
from stack.servers import lake_catalog
from stack.atomic_write import write_private

catalog = Connection.from_airflow_environment("penstock_catalog", os.environ)
lake_catalog.create_tables(catalog.conninfo())
login = Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
write_private(login, json.dumps({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}) + "\n")
PYTHON
