-- One that nobody has renewed for a minute was killed with its task.
select until, cuts
from penstock.kept_spark
where pipeline = %(name)s and seen_at > clock_timestamp() - interval '1 minute'
