select from_lsn, upto_lsn, state, rows as changes, bytes, transactions, seconds, planned_at, staged_at, source_time, by_task
from penstock.window
where pipeline = %(name)s
order by era desc, from_lsn desc
limit %(limit)s
