-- Tables of the lake that were replaced by fresh ones, since maintenance first saw them, until their files are gone.
create table penstock.old_table (
    pipeline text not null references penstock.pipeline on delete cascade,
    namespace text not null,
    name text not null,
    location text not null,
    seen_at timestamptz not null default clock_timestamp(),
    primary key (pipeline, namespace, name)
)
