-- What comparisons found of a table, or of one share of its keys, the newest first; share 1 of 1 is all rows.
select
    v.lsn, f.verified_at, f.share, f.shares, f.outcome, f.reason, f.source_rows, f.lake_rows, f.missing, f.extra,
    f.different
from penstock.verified as f
join penstock.verification as v on v.number = f.verification
where v.pipeline = %(name)s and f.oid = %(oid)s
order by f.verification desc, f.share desc
limit %(limit)s
