select
    s.oid, s.share, count(*) over (partition by s.oid)::int as shares, s.wanted, s.key_column, s.key_type, s.indexed,
    s.lower, s.upper, s.verified_lsn, s.verified_at, s.differs
from penstock.key_share as s
where s.pipeline = %(name)s
order by s.oid, s.share
