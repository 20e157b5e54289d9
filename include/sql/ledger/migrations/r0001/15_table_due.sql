-- What a table is called, which is the state of its first copy until a cut has given that the table's name, and after which position it
-- still needs windows.
create view penstock.table_due as
select
    t.pipeline, t.oid,
    case when t.state = 'new' then coalesce(first.called, t.state) else t.state end as state,
    case when t.paused_from_state = 'new' then coalesce(first.called, t.paused_from_state) else t.paused_from_state end as paused_from_state,
    case
        when t.state = 'dropped' then null
        when first.called is null then t.complete_through
        else penstock.needed_after(t.pipeline, first.snapshot)
    end as after
from penstock.table as t
left join lateral (
    select l.snapshot, case l.state when 'ready' then 'copied' else 'copying' end as called
    from penstock.load as l
    where
        l.pipeline = t.pipeline and l.copy_id = t.copy_id and l.oid = t.oid
        and l.cause = 'first' and l.state in ('copying', 'ready')
) as first on true
