-- What was done in a span of time; the counts of verifications are of tables or shares.
select
    (select coalesce(sum(w.rows), 0)::bigint from penstock.window as w where w.pipeline = %(name)s and w.staged_at >= %(since)s) as captured,
    (select count(*) from penstock.cut as c where c.pipeline = %(name)s and c.published_at >= %(since)s) as cuts,
    (
        select count(*) from penstock.verified as v
        join penstock.verification as r on r.number = v.verification
        where r.pipeline = %(name)s and v.verified_at >= %(since)s and v.outcome = 'equal'
    ) as equal,
    (
        select count(*) from penstock.verified as v
        join penstock.verification as r on r.number = v.verification
        where r.pipeline = %(name)s and v.verified_at >= %(since)s and v.outcome in ('differs', 'unreadable')
    ) as unequal,
    (select count(*) from penstock.table as t where t.pipeline = %(name)s and t.verified_through is not null) as verified_tables
