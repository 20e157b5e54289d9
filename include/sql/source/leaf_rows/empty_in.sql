select case when not exists (select from only {leaf}) then pg_current_snapshot()::text end
