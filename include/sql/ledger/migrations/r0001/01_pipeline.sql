create table penstock.pipeline (
    name text primary key,
    state text not null default 'new'
        check (state in ('new', 'bootstrapping', 'running', 'halted', 'torn_down')),
    database text not null,
    slot text not null,
    slot_intent_at timestamptz,
    -- whether Penstock made the slot: only such a one is dropped by teardown and recovery
    slot_made boolean,
    publication text not null,
    publication_oid oid,
    -- how the publication published at the last look, with the version of its row in the source's catalog
    publishing jsonb,
    system_identifier numeric(20),
    timeline bigint,
    era integer not null default 1 check (era > 0),
    consistent_point pg_lsn,
    position pg_lsn check (position >= consistent_point),
    -- where its tables and its table of cuts lie; two that are not torn down may not have one place
    lake_place text,
    -- the random name of the landing zone, and whether the zone has it: else it is the one that a bootstrap was about to give
    landing_mark text,
    landing_marked boolean not null default false check (landing_mark is not null or not landing_marked),
    -- from here on the source has been found with another history: nothing ends that but reading the windows since as
    -- they were staged
    unproved_from pg_lsn,
    halted_slug text,
    halted_reason text,
    halted_from text check (halted_from in ('new', 'bootstrapping', 'running')),
    halted_by jsonb,
    merge_attempt text,
    -- the lake's names of the tables of former eras, by oid: a source whose tables were renamed keeps them, if it is to
    former_targets jsonb not null default '{}',
    created_at timestamptz not null default now(),
    check ((consistent_point is null) = (position is null)),
    check (state <> 'running' or consistent_point is not null),
    check ((state = 'halted') = (halted_slug is not null)),
    check ((state = 'halted') = (halted_from is not null)),
    constraint one_pipeline_per_place exclude using btree (lake_place with =) where (state <> 'torn_down')
)
