-- Where a scratch database keeps what the WAL would hold.
create schema if not exists penstock_ddl;
create table if not exists penstock_ddl.told (number bigint generated always as identity, content bytea not null);
truncate penstock_ddl.told
