-- Who writes rows of other servers here: the subscriptions of this database with the tables that they fill, and replication
-- origins that belong to no subscription (theirs are named pg_<oid>), which may write anywhere.
select 'subscription ' || s.subname as writer, r.srrelid::bigint as relation
from pg_subscription s
join pg_subscription_rel r on r.srsubid = s.oid
where s.subdbid = (select oid from pg_database where datname = current_database())
union all
select 'replication origin ' || o.roname, null
from pg_replication_origin o
where o.roname !~ '^pg_[0-9]+(_|$)'
order by 1, 2
