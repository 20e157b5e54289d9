-- Nothing is inserted unless this attempt is the newest and everything through the cut is staged.
insert into penstock.cut (pipeline, era, lsn, attempt, rows, tables)
select
    p.name, p.era, %(lsn)s, %(attempt)s, %(rows)s,
    coalesce(
        (
            select
                jsonb_agg(
                    jsonb_build_object(
                        'oid', t.oid::bigint, 'schema', t.schema, 'name', t.name, 'target', t.target,
                        'state', t.state, 'complete_through', t.complete_through::text, 'snapshot_id', t.snapshot_id
                    )
                    order by t.schema, t.name
                )
            from penstock.table as t
            where t.pipeline = p.name and t.state <> 'dropped'
        ),
        '[]'
    )
from penstock.pipeline as p
where p.name = %(name)s and p.merge_attempt = %(attempt)s and p.position >= %(lsn)s
