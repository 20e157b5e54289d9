insert into penstock.changelog_fill (pipeline, from_time, upto_time, era, through_lsn, attempt, rows, tables)
values (%(name)s, %(from_time)s, %(upto_time)s, %(era)s, %(through_lsn)s, %(attempt)s, %(rows)s, %(tables)s)
