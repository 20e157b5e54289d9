-- Every table that may ever be merged has all through here; a paused table keeps what it will need.
select min(after) from penstock.table_due where pipeline = %(name)s
