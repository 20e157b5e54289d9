-- Each published table with a digest of its row in the statement `published`, and whether the publication names it by itself.
select p.oid, md5(p::text), p.listed
from ({published}) as p (oid, columns, filter, membership, listed)
