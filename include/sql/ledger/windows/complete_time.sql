-- The latest time of the source by which all that was committed lies at or before a position; NULL where unknown.
select max(c.last_at)
from penstock.source_clock as c
join penstock.pipeline as p on p.name = c.pipeline and p.era = c.era
where
    c.pipeline = %(name)s and c.lsn <= %(upto)s
    and (not c.begins or c.last_at > c.first_at) -- a slot's own time was read after it was made: commits may lie between
