#!/bin/sh
# Runs once, when the control server's volume is new: a role and a database for Airflow's metadata, and another pair
# for the ledger and the lake's catalog.
set -eu

psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
  --set airflow_password="$AIRFLOW_DB_PASSWORD" --set penstock_password="$PENSTOCK_DB_PASSWORD" <<'SQL'
create role airflow login password :'airflow_password';
create role penstock login password :'penstock_password';
create database airflow owner airflow;
create database penstock owner penstock;
revoke all on database airflow, penstock from public;
SQL
