-- A place where a window must end and a cut must lie, so that the lake can be read exactly there.
create table penstock.mark (
    pipeline text not null references penstock.pipeline on delete cascade,
    era integer not null,
    lsn pg_lsn not null,
    reason text not null,
    made_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, era, lsn)
)
