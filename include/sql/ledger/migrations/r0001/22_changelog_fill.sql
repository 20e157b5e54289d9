-- Which intervals of commit time the changelogs hold, and through which position that was true.
create table penstock.changelog_fill (
    pipeline text not null references penstock.pipeline on delete cascade,
    from_time timestamptz not null,
    upto_time timestamptz not null check (upto_time > from_time),
    era integer not null,
    through_lsn pg_lsn not null,
    attempt text not null,
    rows bigint not null,
    tables jsonb not null,
    filled_at timestamptz not null default clock_timestamp(),
    late_rows bigint not null default 0,
    primary key (pipeline, from_time, upto_time)
)
