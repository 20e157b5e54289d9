update penstock.window
set state = 'confirmed', confirmed_at = clock_timestamp()
where
    pipeline = %(name)s and state = 'staged' and upto_lsn <= %(through)s
    and %(through)s <= (select position from penstock.pipeline where name = %(name)s)
