-- Rows of one table that were read under a snapshot, and what became of them. A `first` copy is loaded into a fresh table that takes the
-- target's name in the same cut. A resync is built next to the table that readers see, from the copy and the windows since, and takes
-- that name in a cut; so is a replay, from the files of an earlier load. A shadow stays under a name of its own, as of `goal_lsn`. Values of `columns` and rows of `partitions`
-- are taken in by a merge, where they stand among the changes; they are kept as long as the table: what was copied before them cannot be
-- brought forward across them.
create table penstock.load (
    pipeline text not null references penstock.pipeline on delete cascade,
    id text not null,
    oid oid not null,
    era integer not null,
    cause text not null check (cause in ('first', 'resync', 'columns', 'partitions', 'replay', 'shadow')),
    state text not null check (state in ('copying', 'landed', 'building', 'ready', 'done', 'given_up')),
    schema text not null,
    name text not null,
    target text[] not null,
    place text[] not null,
    identity text not null check (identity in ('d', 'i', 'f', 'n')),
    columns jsonb not null,
    shape jsonb not null,
    -- the run that read the rows, in whose folder the files lie, and what its snapshot was: all that was committed before `lsn`
    copy_id text not null,
    snapshot text not null,
    lsn pg_lsn not null,
    -- after which position the rows need windows. It was worked out when the snapshot was taken and all windows were
    -- there, so it also shows that some of them are gone
    needs_after pg_lsn not null,
    -- which of the table's columns those of the files are, in their order; `whole`: of columns, the values of all rows
    attnums integer[] not null,
    whole boolean not null default false,
    -- rows of the partitions that `leaves` names replace all that are not within these bounds (as the table's digest has them)
    stays jsonb,
    leaves text[] not null default '{}',
    -- null where they were forgotten
    files jsonb default '[]',
    rows bigint not null default 0,
    bytes bigint not null default 0,
    copy_started_at timestamptz,
    copied_at timestamptz,
    through_lsn pg_lsn,
    goal_lsn pg_lsn,
    snapshot_id bigint,
    run text,
    built_rows bigint not null default 0,
    -- what it has met on its way, counted as for a table; the counts go along with the name
    update_missing bigint not null default 0,
    delete_missing bigint not null default 0,
    insert_existing bigint not null default 0,
    misfits bigint not null default 0,
    former jsonb,
    slug text,
    reason text,
    started_at timestamptz not null default clock_timestamp(),
    changed_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    by_task jsonb default penstock.by_task(),
    primary key (pipeline, id, oid),
    check (state <> 'building' or cause in ('resync', 'replay', 'shadow')),
    check (state <> 'ready' or cause in ('first', 'resync', 'replay', 'shadow')),
    check (state <> 'landed' or cause in ('columns', 'partitions')),
    check (state not in ('ready', 'done') or cause = 'first' or through_lsn is not null),
    check ((state in ('done', 'given_up')) = (finished_at is not null)),
    check ((cause = 'shadow') = (goal_lsn is not null))
)
