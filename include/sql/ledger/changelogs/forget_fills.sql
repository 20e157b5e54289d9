-- What lies within the interval is replaced with it.
delete from penstock.changelog_fill
where pipeline = %(name)s and from_time >= %(from_time)s and upto_time <= %(upto_time)s
