-- How far each table is verified, what the newest comparison of it came to, the newest one that found it to differ, and
-- what its merges have met since its copy.
select
    t.oid, t.schema, t.name, t.verified_through, t.verified_at, trust.differs,
    n.lsn as compared_lsn, n.verified_at as compared_at, n.outcome, n.reason,
    d.number as verification, d.lsn as differing_lsn, d.verified_at as differing_at,
    coalesce(d.missing, 0) as missing, coalesce(d.extra, 0) as extra, coalesce(d.different, 0) as different,
    trust.conflicts, trust.suspected, t.misfits, t.conflict_lsn
from penstock.table as t
join penstock.pipeline as p on p.name = t.pipeline
join penstock.table_trust as trust on trust.pipeline = t.pipeline and trust.oid = t.oid
left join lateral (
    select v.number, v.lsn, f.verified_at, f.outcome, f.reason
    from penstock.verification as v
    join penstock.verified as f on f.verification = v.number
    where v.pipeline = t.pipeline and v.era = p.era and f.oid = t.oid
    order by v.number desc, f.outcome = 'unreadable' desc, f.outcome = 'differs' desc
    limit 1
) as n on true
left join lateral (
    select v.number, v.lsn, f.verified_at, f.missing, f.extra, f.different
    from penstock.verification as v
    join penstock.verified as f on f.verification = v.number
    where v.pipeline = t.pipeline and v.era = p.era and f.oid = t.oid and f.outcome = 'differs'
    order by v.number desc
    limit 1
) as d on true
where t.pipeline = %(name)s and t.state <> 'dropped'
order by t.schema, t.name
