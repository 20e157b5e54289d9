-- All rows of the table were compared.
update penstock.table as t
set
    verified_through = case when %(equal)s then v.lsn else t.verified_through end,
    verified_at = case when %(equal)s then clock_timestamp() else t.verified_at end,
    differs = not %(equal)s
from penstock.verification as v
where v.number = %(number)s and t.pipeline = v.pipeline and t.oid = %(oid)s
