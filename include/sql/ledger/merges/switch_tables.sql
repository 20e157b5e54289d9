-- What was built is the table from here on, with the columns that it was built with and what is open of it; what the table looked like that
-- is replaced is kept, for whoever wants to build it again as of an earlier time. A first copy is of a table that still waits for it, which
-- keeps what is open; where the lake has `moved` before the ledger, one that is paused stays so. One that was renamed since this merge was
-- planned takes its newer name in the next cut.
with
    switched as (
        update penstock.load as r
        set
            state = 'done', through_lsn = %(lsn)s, snapshot_id = p.snapshot_id,
            update_missing = r.update_missing + p.update_missing, delete_missing = r.delete_missing + p.delete_missing,
            insert_existing = r.insert_existing + p.insert_existing, misfits = r.misfits + p.misfits,
            former = case when r.cause <> 'first' then jsonb_build_object('columns', t.columns, 'identity', t.identity) end,
            finished_at = clock_timestamp(), changed_at = clock_timestamp()
        from jsonb_to_recordset(%(tables)s) as p (
            oid oid, snapshot_id bigint, load text, target text[], shows text, columns text,
            update_missing bigint, delete_missing bigint, insert_existing bigint, misfits bigint
        )
        join penstock.table as t on t.pipeline = %(name)s and t.oid = p.oid and t.state <> 'dropped'
        where
            r.pipeline = %(name)s and r.id = p.load and r.oid = p.oid and r.state = 'ready'
            and coalesce(r.through_lsn, r.lsn) <= %(lsn)s
            and (
                r.cause <> 'first'
                or r.copy_id = t.copy_id and 'new' in (t.state, case when %(moved)s then t.paused_from_state end)
            )
        returning r.*, coalesce(p.target, r.target) as shown_as, p.shows, p.columns as lake_columns, r.cause = 'first' and t.state = 'paused' as still_paused
    ),
    answered as (
        delete from penstock.open_question as q using switched as s
        where q.pipeline = %(name)s and q.oid = s.oid and q.load = '' and s.cause <> 'first'
    ),
    forgotten as (
        delete from penstock.departed_partition as d using switched as s
        where d.pipeline = %(name)s and d.oid = s.oid and d.load = '' and s.cause <> 'first'
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
    state = case when s.still_paused then t.state else 'ready' end, complete_through = s.through_lsn, snapshot_id = s.snapshot_id,
    copy_id = s.copy_id, schema = s.schema, name = s.name, target = s.shown_as,
    renamed_to = nullif(s.target, s.shown_as), identity = s.identity,
    columns = s.columns, shape = s.shape, shows = s.shows, lake_columns = s.lake_columns,
    update_missing = s.update_missing, delete_missing = s.delete_missing, insert_existing = s.insert_existing,
    misfits = s.misfits,
    conflict_lsn = case when s.update_missing + s.delete_missing + s.insert_existing > 0 then %(lsn)s end,
    paused_slug = case when s.still_paused then t.paused_slug end, paused_reason = case when s.still_paused then t.paused_reason end,
    paused_by = case when s.still_paused then t.paused_by end, paused_from_state = case when s.still_paused then 'ready' end,
    remedy = case when s.still_paused then t.remedy end
from switched as s
where t.pipeline = %(name)s and t.oid = s.oid
returning t.oid
