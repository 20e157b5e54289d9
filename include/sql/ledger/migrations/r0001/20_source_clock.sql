-- What capture saw of the source's clock: all that had committed before `first_at` lies at or before `lsn`, and at
-- `last_at` that was still so. `begins` marks the position at which an era's slot was made: its `first_at` was read after
-- that, so all that committed since `first_at` lies after `lsn`, and it says nothing of what lies before.
-- `looked_at` is the server's own clock at the last look that found the WAL ending here: on a standby `last_at` is the time of
-- the last commit that it has replayed, which stands still while its primary is idle.
create table penstock.source_clock (
    pipeline text not null references penstock.pipeline on delete cascade,
    era integer not null,
    lsn pg_lsn not null,
    first_at timestamptz not null,
    last_at timestamptz not null,
    looked_at timestamptz not null,
    begins boolean not null default false,
    primary key (pipeline, era, lsn)
)
