-- What the newest comparisons found of a table, or of shares of its keys.
select
    v.lsn, f.verified_at, f.share, f.shares, f.outcome, f.reason, f.source_rows, f.lake_rows, f.missing, f.extra,
    f.different
from penstock.verified as f
join penstock.verification as v on v.number = f.verification
where v.pipeline = %(name)s and f.oid = %(oid)s
order by f.verification desc, f.share desc
limit %(limit)s
