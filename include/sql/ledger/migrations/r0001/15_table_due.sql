-- After which position a table still needs windows.
create view penstock.table_due as
select
    t.pipeline, t.oid, t.state, c.lsn as copied_through,
    case when c.id is null then t.complete_through else penstock.needed_after(t.pipeline, c.snapshot) end as after
from penstock.table as t
left join penstock.load as c
    on
        c.pipeline = t.pipeline and c.copy_id = t.copy_id and c.oid = t.oid
        and c.cause = 'first' and c.state in ('copying', 'landed')
where t.state <> 'dropped'
