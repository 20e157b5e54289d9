-- The rows of the statement `published` of some tables only, or of all with null.
select p.*
from ({published}) as p (oid, columns, filter, membership, listed)
where p.oid = any (%(oids)s) or %(oids)s::bigint[] is null
