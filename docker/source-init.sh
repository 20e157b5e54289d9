#!/bin/sh
# Runs once, when the source's volume is new: the roles that Penstock decodes and reads with, and a shop to play with (sample.sql).
set -eu

# For psql below, which reads the password from its file: it is on no command line.
PENSTOCK_CAPTURE_FILE=${PENSTOCK_SECRETS:-/run/secrets}/penstock_capture
PENSTOCK_READER_FILE=${PENSTOCK_SECRETS:-/run/secrets}/penstock_reader
SAMPLE=${PENSTOCK_SAMPLE:-/sample}
export PENSTOCK_CAPTURE_FILE PENSTOCK_READER_FILE

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
\set capture_password `cat "$PENSTOCK_CAPTURE_FILE"`
\set reader_password `cat "$PENSTOCK_READER_FILE"`
create role penstock_capture login replication password :'capture_password';
create role penstock_reader login password :'reader_password';
select format('grant connect on database %I to penstock_capture, penstock_reader', current_database()) \gexec
grant pg_monitor to penstock_capture;
-- Whoever owns the sample's tables; no program logs in as this role.
create role shop_owner;
select format('grant create on database %I to shop_owner', current_database()) \gexec
grant usage, create on schema public to shop_owner;
SQL

# pgbench's tables, for `docker compose exec source pgbench ...`: changes as many as you like
PGOPTIONS='-c role=shop_owner' pgbench --initialize --quiet --scale 1 --username "$POSTGRES_USER" "$POSTGRES_DB" 2>/dev/null

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --single-transaction --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
  --command 'set role shop_owner' --file "$SAMPLE/schema.sql" --file "$SAMPLE/content.sql" \
  --file "$SAMPLE/publish.sql" --output /dev/null
psql --no-psqlrc --quiet --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --command 'vacuum analyze'
