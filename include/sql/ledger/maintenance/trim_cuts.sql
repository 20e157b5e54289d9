-- The last cut stays, and for longer the last one of each day (UTC).
delete from penstock.cut as c
where
    c.pipeline = %(name)s
    and c.published_at < %(before)s
    and exists (select from penstock.cut as newer where newer.pipeline = c.pipeline and newer.number > c.number)
    and (
        c.published_at < %(daily_before)s
        or exists (
            select from penstock.cut as later
            where
                later.pipeline = c.pipeline and later.number > c.number
                and (later.published_at at time zone 'UTC')::date = (c.published_at at time zone 'UTC')::date
        )
    )
