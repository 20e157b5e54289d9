-- What says what the tables' columns were from a position on: the newest shape of the catalog that was sure to be so there, and all after
-- it; and the one that was logged last.
select s.oid::bigint as oid, s.evidence, s.generation, coalesce(s.seen_at <= %(since)s, false) as sure, s.shape
from penstock.shape as s
where
    s.pipeline = %(name)s
    and s.oid = any(%(oids)s::bigint[]::oid[])
    and s.number >= coalesce(
        (
            select max(k.number)
            from penstock.shape as k
            where
                k.pipeline = s.pipeline and k.oid = s.oid and k.evidence = s.evidence
                and (s.evidence = 'trigger' or k.seen_at <= %(since)s)
        ),
        0
    )
order by s.oid, s.number
