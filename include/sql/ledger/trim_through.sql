-- Every table that may ever be merged has all through here; a paused table keeps what it will need, as an open rebuild does.
select min(after)
from (
    select after from penstock.table_due where pipeline = %(name)s
    union all
    select after from penstock.rebuild_due where pipeline = %(name)s
) as due
