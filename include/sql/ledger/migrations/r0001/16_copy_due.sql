-- After which position a copy needs windows to become its table. A replay begins here, so whoever lets a later window go lets
-- the copy go too.
create view penstock.copy_due as
select c.pipeline, c.id, c.oid, penstock.needed_after(c.pipeline, c.snapshot) as after
from penstock.copy as c
