-- Recorded once, and again only after another message was recorded under the same slug and table; with `first` false only then.
insert into penstock.event (pipeline, slug, level, table_oid, message)
select %(name)s, %(slug)s, %(level)s, %(table_oid)s, %(message)s
from (
    select (
        select message
        from penstock.event
        where pipeline = %(name)s and slug = %(slug)s and table_oid is not distinct from %(table_oid)s::oid
        order by number desc
        limit 1
    ) as last
) as recorded
where recorded.last is distinct from %(message)s and (%(first)s or recorded.last is not null)
