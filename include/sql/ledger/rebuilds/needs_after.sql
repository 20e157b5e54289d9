update penstock.copy as c
set needs_after = d.after
from penstock.copy_due as d
where
    c.pipeline = %(name)s and c.id = %(copy_id)s and c.needs_after is null
    and d.pipeline = c.pipeline and d.id = c.id and d.oid = c.oid
