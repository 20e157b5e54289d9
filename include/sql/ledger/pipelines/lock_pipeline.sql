select 1 from penstock.pipeline where name = %(name)s for update
