-- Of the catalog only what differs from its newest shape of the same table, which is repeated where no other is given; whoever did not ask
-- for the event trigger does not compare that.
insert into penstock.shape (pipeline, oid, number, seen_at, evidence, generation, shape)
select
    %(name)s, g.oid, coalesce((select max(k.number) from penstock.shape as k where k.pipeline = %(name)s and k.oid = g.oid), 0) + 1,
    %(seen_at)s, %(evidence)s, g.generation, coalesce(g.shape, n.shape)
from jsonb_to_recordset(%(shapes)s) as g (oid oid, generation text, shape jsonb)
left join lateral (
    select k.generation, k.shape
    from penstock.shape as k
    where k.pipeline = %(name)s and k.oid = g.oid and k.evidence = %(evidence)s
    order by k.number desc
    limit 1
) as n on true
where
    coalesce(g.shape, n.shape) is not null
    and (
        %(evidence)s = 'trigger'
        or n.shape is distinct from coalesce(g.shape, n.shape)
        or (g.generation is not null and n.generation is distinct from g.generation)
    )
