select oid::bigint as oid, version, from_lsn, sent, mapped, attnums, key
from penstock.relation
where pipeline = %(name)s
order by oid, version, from_lsn
