-- A table that joined after bootstrap: where, and the first transaction id not given out then (null on a standby).
-- One that left: the position through which it was published; `discard` says that its lake table is to be dropped.
alter table penstock.table
    add column joined_lsn pg_lsn,
    add column joined_xid bigint,
    add column rung_at timestamptz,
    add column left_lsn pg_lsn,
    add column discard boolean not null default false,
    add check (joined_xid is null or joined_lsn is not null),
    add check (left_lsn is null or state in ('ready', 'paused', 'dropped')),
    add check (not discard or left_lsn is not null)
