update penstock.changelog_fill
set late_rows = late_rows + %(rows)s
where pipeline = %(name)s and from_time = %(from_time)s and upto_time = %(upto_time)s and attempt = %(attempt)s
