-- Whether `report` wrote a message's content in this transaction: by a digest (HMAC's, with two keys) over the transaction's 64-bit id and
-- all that follows the digest. The id is the one with these 32 bits that is nearest to the newest. Digests are compared by theirs, so
-- that the time which this takes says nothing of them.
select sha256(substr($2, 1, 32)) = sha256(sha256(s.outer_key || sha256(s.inner_key || int8send(x.newest + x.from_newest) || substr($2, 33))))
from penstock_ddl.secret as s
cross join (
  select n.newest, ((($1::text::bigint - n.newest) & 4294967295) # 2147483648) - 2147483648 as from_newest
  from (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as newest) as n
) as x
