#!/bin/sh
# Runs once, when the source's volume is new: the role that Penstock reads with. The tables are yours to make.
set -eu

psql --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
  --set reader_password="$PENSTOCK_READER_PASSWORD" --set database="$POSTGRES_DB" <<'SQL'
create role penstock_reader login replication password :'reader_password';
grant connect on database :"database" to penstock_reader;
grant pg_monitor to penstock_reader;
SQL
