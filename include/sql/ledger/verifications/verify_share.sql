update penstock.key_share as s
set verified_lsn = v.lsn, verified_at = clock_timestamp(), differs = not %(equal)s
from penstock.verification as v
where v.number = %(number)s and s.pipeline = v.pipeline and s.oid = %(oid)s and s.share = %(share)s
