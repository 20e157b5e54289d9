select pipeline, from_time, upto_time, era, through_lsn, attempt, rows, tables, filled_at, late_rows
from penstock.changelog_fill
where
    pipeline = %(name)s
    and (%(from_time)s::timestamptz is null or upto_time > %(from_time)s)
    and (%(upto_time)s::timestamptz is null or from_time < %(upto_time)s)
order by from_time desc, upto_time desc
limit %(limit)s
