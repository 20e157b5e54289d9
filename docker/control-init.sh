#!/bin/sh
# Runs once, when the control server's volume is new: a role and a database for Airflow's metadata, and another pair
# for the ledger and the lake's catalog.
set -eu

# For psql below, which reads the passwords from their files: they are on no command line.
SECRETS=${PENSTOCK_SECRETS:-/run/secrets}
export SECRETS

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'SQL'
\set airflow_password `cat "$SECRETS/airflow_db"`
\set penstock_password `cat "$SECRETS/penstock_db"`
create role airflow login password :'airflow_password';
create role penstock login password :'penstock_password';
create database airflow owner airflow;
create database penstock owner penstock;
revoke all on database airflow, penstock from public;
SQL
