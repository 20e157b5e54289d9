create table penstock.table (
    pipeline text not null references penstock.pipeline on delete cascade,
    oid oid not null,
    schema text not null,
    name text not null,
    target text[] not null,
    -- the name that the lake's table takes in the next cut, where the source's was renamed
    renamed_to text[] check (renamed_to <> target),
    state text not null default 'new'
        check (state in ('new', 'ready', 'paused', 'dropped')),
    identity text not null check (identity in ('d', 'i', 'f', 'n')),
    columns jsonb not null,
    -- the accepted one, with what open questions hold back as it was before
    shape jsonb not null,
    -- the stamp of the catalog's rows with which these facts were found to agree; null where they have to be compared
    looked text,
    -- a table that joined after bootstrap: where, and the first transaction id not given out then (null on a standby)
    joined_lsn pg_lsn,
    joined_xid bigint,
    announced_at timestamptz,
    -- one that left: the position through which it was published, and whether its lake table is to be dropped
    left_lsn pg_lsn,
    discard boolean not null default false,
    copy_id text,
    complete_through pg_lsn,
    snapshot_id bigint,
    -- the metadata file that the catalog shows since our last cut, and the stamp of its columns: what a table with nothing to
    -- do is compared with; null before the first cut
    shows text,
    lake_columns text,
    -- changes that met rows which should or should not have been there, and values that did not fit, since the table's
    -- copy; the newest cut with a conflict
    update_missing bigint not null default 0,
    delete_missing bigint not null default 0,
    insert_existing bigint not null default 0,
    misfits bigint not null default 0,
    conflict_lsn pg_lsn,
    -- every row was seen to be equal at this position, or later; `verified_at` is when the last of them was
    verified_through pg_lsn,
    verified_at timestamptz,
    differs boolean not null default false,
    paused_slug text,
    paused_reason text,
    paused_from_state text check (paused_from_state in ('new', 'ready')),
    -- what ends the pause: to read values of some columns or rows of some partitions, a copy, or a person, who copies or resumes it
    remedy text check (remedy in ('read', 'copy', 'resume', 'person')),
    -- since when it is paused, or paused time and again: copies that do not help are made ever more rarely
    paused_at timestamptz,
    paused_by jsonb,
    primary key (pipeline, oid),
    -- deferred, so that two tables may swap their names in one transaction
    constraint one_table_per_target
        exclude using btree (pipeline with =, (coalesce(renamed_to, target)) with =)
        where (state <> 'dropped' and left_lsn is null)
        deferrable initially deferred,
    check ((state = 'paused') = (paused_slug is not null)),
    check ((state = 'paused') = (paused_from_state is not null)),
    check ((state = 'paused') = (remedy is not null)),
    check (state <> 'ready' or complete_through is not null),
    check (joined_xid is null or joined_lsn is not null),
    check (left_lsn is null or state in ('ready', 'paused', 'dropped')),
    check (not discard or left_lsn is not null)
)
