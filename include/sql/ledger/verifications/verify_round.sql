-- Once every share of a round was seen to be equal, the table is: at the position of the share that was looked at first.
update penstock.table as t
set verified_through = greatest(t.verified_through, r.through), verified_at = r.at, differs = false
from (
    select s.pipeline, s.oid, min(s.verified_lsn) as through, max(s.verified_at) as at
    from penstock.key_share as s
    join penstock.verification as v on v.number = %(number)s and v.pipeline = s.pipeline
    where s.oid = %(oid)s
    group by s.pipeline, s.oid
    having bool_and(s.verified_lsn is not null and not s.differs)
) as r
where t.pipeline = r.pipeline and t.oid = r.oid
