select pipeline, attempt, started_at, ended_at, dry_run, report, error
from penstock.maintenance
where pipeline = %(name)s
order by started_at desc
limit %(limit)s
