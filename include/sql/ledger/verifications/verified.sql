select
    d.oid, d.schema, d.name, d.share, d.shares, d.outcome, d.reason, d.source_rows, d.lake_rows, d.missing, d.extra,
    d.different, d.details
from penstock.verified as d
where d.verification = %(number)s
order by d.schema, d.name, d.share
