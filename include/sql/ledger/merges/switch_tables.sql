-- The rebuilt table is the table from here on, with the columns that it was built with and what is open of it; what the table looked like that
-- is replaced is kept, for whoever wants to build it again as of an earlier time.
with
    switched as (
        update penstock.load as r
        set
            state = 'done', through_lsn = %(lsn)s, snapshot_id = p.snapshot_id,
            update_missing = r.update_missing + p.update_missing, delete_missing = r.delete_missing + p.delete_missing,
            insert_existing = r.insert_existing + p.insert_existing, misfits = r.misfits + p.misfits,
            former = jsonb_build_object('columns', t.columns, 'identity', t.identity),
            finished_at = clock_timestamp(), changed_at = clock_timestamp()
        from jsonb_to_recordset(%(tables)s) as p (
            oid oid, snapshot_id bigint, rebuild text, shows text, columns text,
            update_missing bigint, delete_missing bigint, insert_existing bigint, misfits bigint
        )
        join penstock.table as t on t.pipeline = %(name)s and t.oid = p.oid and t.state <> 'dropped'
        where
            r.pipeline = %(name)s and r.id = p.rebuild and r.oid = p.oid and r.state = 'ready'
            and r.through_lsn <= %(lsn)s
        returning r.*, p.shows, p.columns as lake_columns
    ),
    answered as (
        delete from penstock.open_question as q using switched as s
        where q.pipeline = %(name)s and q.oid = s.oid and q.load = ''
    ),
    forgotten as (
        delete from penstock.departed_partition as d using switched as s
        where d.pipeline = %(name)s and d.oid = s.oid and d.load = ''
    ),
    open_questions as (
        update penstock.open_question as q set load = '' from switched as s
        where q.pipeline = %(name)s and q.oid = s.oid and q.load = s.id
    ),
    departed as (
        update penstock.departed_partition as d set load = '' from switched as s
        where d.pipeline = %(name)s and d.oid = s.oid and d.load = s.id
    )
update penstock.table as t
set
    state = 'ready', complete_through = s.through_lsn, snapshot_id = s.snapshot_id, copy_id = s.copy_id,
    schema = s.schema, name = s.name, target = s.target, renamed_to = null, identity = s.identity,
    columns = s.columns,
    shape = s.shape, shows = s.shows, lake_columns = s.lake_columns,
    update_missing = s.update_missing, delete_missing = s.delete_missing, insert_existing = s.insert_existing,
    misfits = s.misfits,
    conflict_lsn = case when s.update_missing + s.delete_missing + s.insert_existing > 0 then %(lsn)s end,
    paused_slug = null, paused_reason = null, paused_by = null, paused_from_state = null, remedy = null
from switched as s
where t.pipeline = %(name)s and t.oid = s.oid
