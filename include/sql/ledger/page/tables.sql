-- The last change of a table is looked for in the newest windows that hold changes, not in all that ever were.
select
    t.oid, t.schema || '.' || t.name as name, array_to_string(t.target, '.') as target,
    case
        when d.state = 'new' and t.joined_lsn is not null then 'waiting'
        when t.state = 'ready' and t.left_lsn is not null then 'leaving'
        else d.state
    end as state,
    t.complete_through, recent.changed_at, recent.changes, size.rows, size.bytes, t.paused_slug, t.paused_reason, t.remedy,
    t.verified_through, t.verified_at,
    trust.differs, trust.conflicts, t.misfits, trust.suspected, t.paused_by
from penstock.table as t
join penstock.table_due as d on d.pipeline = t.pipeline and d.oid = t.oid
join penstock.table_trust as trust on trust.pipeline = t.pipeline and trust.oid = t.oid
left join (
    select (file ->> 'oid')::oid as oid, sum((file ->> 'rows')::bigint)::bigint as changes,
        max(w.source_time) as changed_at
    from (
        select files, source_time
        from penstock.window
        where pipeline = %(name)s and rows > 0
        order by era desc, from_lsn desc
        limit %(windows)s
    ) as w
    cross join lateral jsonb_array_elements(w.files) as file
    group by (file ->> 'oid')::oid
) as recent on recent.oid = t.oid
left join lateral (
    select tc.rows, tc.bytes
    from penstock.table_cut as tc
    where tc.pipeline = t.pipeline and tc.oid = t.oid
    order by tc.cut desc
    limit 1
) as size on true
where t.pipeline = %(name)s and (%(oid)s::oid is null or t.oid = %(oid)s) and t.state <> 'dropped'
order by (t.state = 'paused') desc, (t.state = 'ready'), t.schema, t.name
limit %(limit)s
