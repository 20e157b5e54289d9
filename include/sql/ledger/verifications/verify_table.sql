-- All rows of the table were compared: where they are equal, those of its shares are.
with
    shares as (
        update penstock.key_share as s
        set differs = false
        from penstock.verification as v
        where v.number = %(number)s and s.pipeline = v.pipeline and s.oid = %(oid)s and %(equal)s
    )
update penstock.table as t
set
    verified_through = case when %(equal)s then v.lsn else t.verified_through end,
    verified_at = case when %(equal)s then clock_timestamp() else t.verified_at end,
    differs = not %(equal)s
from penstock.verification as v
where v.number = %(number)s and t.pipeline = v.pipeline and t.oid = %(oid)s
