-- The Spark application that a merge keeps for what is landed next. A task that was killed leaves its row; `seen_at` tells.
create table penstock.kept_spark (
    pipeline text primary key references penstock.pipeline on delete cascade,
    until timestamptz not null,
    cuts integer not null,
    seen_at timestamptz not null default clock_timestamp()
)
