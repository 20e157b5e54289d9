-- which running server this is: a restored copy has the same identifier, and another start
select (select system_identifier from pg_control_system())::text, pg_postmaster_start_time()::text
