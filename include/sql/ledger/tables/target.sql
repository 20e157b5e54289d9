select
    coalesce(
        (
            select t.target from penstock.table as t
            where t.pipeline = p.name and t.oid = %(oid)s and t.state <> 'dropped' and t.left_lsn is null
        ),
        (select array(select jsonb_array_elements_text(p.former_targets -> %(oid)s::text)) where p.former_targets ? %(oid)s::text)
    )
from penstock.pipeline as p
where p.name = %(name)s
