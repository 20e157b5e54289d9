-- What lies between two eras: changes that are in no window. `era` is the one that ended.
create table penstock.gap (
    pipeline text not null references penstock.pipeline on delete cascade,
    era integer not null,
    reason text not null,
    from_lsn pg_lsn not null,
    upto_lsn pg_lsn,
    from_time timestamptz,
    upto_time timestamptz,
    primary key (pipeline, era)
)
