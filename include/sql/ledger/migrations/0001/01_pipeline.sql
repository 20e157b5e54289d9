create table penstock.pipeline (
    name text primary key,
    state text not null default 'new'
        check (state in ('new', 'bootstrapping', 'running', 'halted', 'torn_down')),
    database text not null,
    slot text not null,
    publication text not null,
    system_identifier numeric(20),
    timeline bigint,
    publication_oid oid,
    slot_intent_at timestamptz,
    consistent_point pg_lsn,
    position pg_lsn check (position >= consistent_point),
    halted_slug text,
    halted_reason text,
    halted_from text check (halted_from in ('new', 'bootstrapping', 'running')),
    merge_attempt text,
    created_at timestamptz not null default now(),
    check ((consistent_point is null) = (position is null)),
    check (state <> 'running' or consistent_point is not null),
    check ((state = 'halted') = (halted_slug is not null)),
    check ((state = 'halted') = (halted_from is not null))
)
