-- The number only has to differ from other programs': the first eight bytes of "penstock".
select pg_advisory_xact_lock(8099000947049456491)
