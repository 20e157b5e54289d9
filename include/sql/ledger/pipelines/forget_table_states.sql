delete from penstock.table_state where pipeline = %(name)s
