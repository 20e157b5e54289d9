create table penstock.table (
    pipeline text not null references penstock.pipeline on delete cascade,
    oid oid not null,
    schema text not null,
    name text not null,
    target text[] not null,
    shape text not null default 'mirror' check (shape in ('mirror')),
    state text not null default 'new'
        check (state in ('new', 'copying', 'copied', 'ready', 'paused', 'dropped')),
    identity text not null check (identity in ('d', 'i', 'f', 'n')),
    columns jsonb not null,
    catalog_digest jsonb not null,
    copy_id text,
    complete_through pg_lsn,
    snapshot_id bigint,
    paused_slug text,
    paused_reason text,
    paused_from_state text check (paused_from_state in ('new', 'copying', 'copied', 'ready')),
    primary key (pipeline, oid),
    -- deferred, so that two tables may swap their names in one transaction
    constraint one_table_per_target
        exclude using btree (pipeline with =, target with =) where (state <> 'dropped')
        deferrable initially deferred,
    check ((state = 'paused') = (paused_slug is not null)),
    check ((state = 'paused') = (paused_from_state is not null)),
    check (state not in ('copying', 'copied') or copy_id is not null),
    check (state <> 'ready' or complete_through is not null)
)
