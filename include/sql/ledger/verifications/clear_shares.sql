update penstock.key_share as s
set differs = false
from penstock.verification as v
where v.number = %(number)s and s.pipeline = v.pipeline and s.oid = %(oid)s
