select case when bool_and(c.xmin = %(xid)s::xid and t.cmin::text::bigint > c.cmin::text::bigint) is not false then count(*) end
from only {leaf} as t
cross join (select xmin, cmin from pg_catalog.pg_class where oid = %(oid)s) as c
where t.xmin = %(xid)s::xid and t.xmax = '0'::xid
