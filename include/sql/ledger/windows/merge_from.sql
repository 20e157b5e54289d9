-- Which tables the next cut can hold, and after which position each needs windows. A copied table waits until the
-- pipeline has reached its snapshot, else the cut would show changes from beyond itself.
select d.oid, d.after
from penstock.table_due as d
join penstock.pipeline as p on p.name = d.pipeline
where
    d.pipeline = %(name)s
    and (d.state = 'ready' or (d.state = 'copied' and d.copied_through <= p.position))
