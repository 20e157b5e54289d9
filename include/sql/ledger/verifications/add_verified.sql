insert into penstock.verified (
    verification, oid, schema, name, share, shares, outcome, reason, source_rows, lake_rows, missing, extra, different,
    details
)
values (
    %(number)s, %(oid)s, %(schema)s, %(table)s, %(share)s, %(shares)s, %(outcome)s, %(reason)s, %(source_rows)s,
    %(lake_rows)s, %(missing)s, %(extra)s, %(different)s, %(details)s
)
