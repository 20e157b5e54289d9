-- The event triggers go with their function.
drop schema if exists penstock_ddl cascade;
