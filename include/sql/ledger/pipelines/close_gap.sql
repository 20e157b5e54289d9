update penstock.gap
set upto_lsn = %(upto_lsn)s, upto_time = %(upto_time)s
where pipeline = %(name)s and upto_lsn is null
