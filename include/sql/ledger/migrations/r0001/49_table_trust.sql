-- What speaks against a table: comparisons that found it to differ, and conflicts that its merges have met since its copy, which leave it
-- suspected until a later comparison finds all rows equal.
create view penstock.table_trust as
select
    t.pipeline, t.oid, d.differs,
    json_strip_nulls(json_build_object(
        'update_missing', nullif(t.update_missing, 0), 'delete_missing', nullif(t.delete_missing, 0),
        'insert_existing', nullif(t.insert_existing, 0)
    )) as conflicts,
    t.conflict_lsn is not null and (d.differs or coalesce(t.verified_through < t.conflict_lsn, true)) as suspected
from penstock.table as t
cross join lateral (
    select
        t.differs or exists (
            select from penstock.key_share as s where s.pipeline = t.pipeline and s.oid = t.oid and s.differs
        ) as differs
) as d
