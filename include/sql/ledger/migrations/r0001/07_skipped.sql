-- Transactions of the stream that no window holds, and the tables that they touched; `xid` is null where that was not to be
-- known. A copy that began after `known_lsn` has their rows.
create table penstock.skipped (
    pipeline text not null references penstock.pipeline on delete cascade,
    era integer not null,
    lsn pg_lsn not null,
    xid bigint,
    oids bigint[] not null,
    known_lsn pg_lsn not null,
    at timestamptz not null default clock_timestamp(),
    primary key (pipeline, era, lsn)
)
