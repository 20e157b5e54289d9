-- From these looks on, the event trigger may have missed something.
update penstock.column_look set ddl_trigger = null where pipeline = %(name)s and ddl_trigger is not null
