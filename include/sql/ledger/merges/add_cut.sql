-- Nothing is inserted unless this attempt is the newest and everything through the cut is staged. What a table's merge
-- counted besides its rows is there where it counted anything.
insert into penstock.cut (pipeline, era, lsn, attempt, rows, cuts_snapshot_id, tables)
select
    p.name, p.era, %(lsn)s, %(attempt)s, %(rows)s, %(cuts_snapshot_id)s,
    coalesce(
        (
            select
                jsonb_agg(
                    jsonb_build_object(
                        'oid', t.oid::bigint, 'schema', t.schema, 'name', t.name, 'target', t.target,
                        'state', d.state, 'complete_through', t.complete_through::text, 'snapshot_id', t.snapshot_id
                    ) || case when c.oid is null then '{}' else jsonb_build_object('counts', c.counts) end
                    order by t.schema, t.name
                )
            from penstock.table as t
            join penstock.table_due as d on d.pipeline = t.pipeline and d.oid = t.oid
            left join jsonb_to_recordset(%(counted)s) as c (oid oid, counts jsonb) on c.oid = t.oid
            where t.pipeline = p.name and t.state <> 'dropped'
        ),
        '[]'
    )
from penstock.pipeline as p
where p.name = %(name)s and p.merge_attempt = %(attempt)s and p.position >= %(lsn)s
