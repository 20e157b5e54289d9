-- After which position a table still needs windows. A table that was copied needs the first window with a change
-- that its snapshot may not have seen, wherever in the present era that lies: a commit can be in the WAL, and in a window,
-- before snapshots see it. By xid that is exact; by position it would be a guess.
create view penstock.table_due as
select
    t.pipeline, t.oid, t.state, c.lsn as copied_through,
    case
        when c.id is null then t.complete_through
        else coalesce(
            (
                select min(w.from_lsn)
                from penstock.window as w
                where
                    w.pipeline = t.pipeline and w.era = p.era
                    and w.max_xid >= split_part(c.snapshot, ':', 1)::bigint
            ),
            p.position
        )
    end as after
from penstock.table as t
join penstock.pipeline as p on p.name = t.pipeline
left join penstock.copy as c
    on c.pipeline = t.pipeline and c.id = t.copy_id and c.oid = t.oid and c.state <> 'loaded'
where t.state <> 'dropped'
