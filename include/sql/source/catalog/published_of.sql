-- The rows of the statement `published` of some tables only.
select p.*
from ({published}) as p (oid, columns, filter, membership, listed)
where p.oid = any (%(oids)s)
