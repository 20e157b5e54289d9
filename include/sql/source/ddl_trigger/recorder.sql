-- Where a scratch database keeps what the WAL would hold.
-- Whatever the source has under this name is not used: it was restored by another role.
drop schema if exists penstock_ddl cascade;
create schema penstock_ddl;
create table penstock_ddl.told (number bigint generated always as identity, content bytea not null)
