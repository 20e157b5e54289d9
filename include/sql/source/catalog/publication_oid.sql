select oid::bigint from pg_publication where pubname = %(publication)s
