select r.oid::bigint, r.version, r.from_lsn, r.attnums, r.key
from penstock.relation_attnums as r
where r.pipeline = %(name)s
order by r.oid, r.version, r.from_lsn
