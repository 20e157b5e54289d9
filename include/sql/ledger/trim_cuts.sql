delete from penstock.cut as c
where
    c.pipeline = %(name)s
    and c.published_at < %(before)s
    and exists (select from penstock.cut as newer where newer.pipeline = c.pipeline and newer.number > c.number)
