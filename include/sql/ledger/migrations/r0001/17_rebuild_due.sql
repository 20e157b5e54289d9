-- After which position an open rebuild still needs windows; one that has no copy yet will need none before now.
create view penstock.rebuild_due as
select
    r.pipeline, r.id, r.oid, r.kind, r.state, r.copy_id,
    coalesce(r.through_lsn, c.after, p.position) as after
from penstock.rebuild as r
join penstock.pipeline as p on p.name = r.pipeline and p.era = r.era
left join penstock.copy_due as c on c.pipeline = r.pipeline and c.id = r.copy_id and c.oid = r.oid
where r.state in ('copying', 'building', 'ready')
