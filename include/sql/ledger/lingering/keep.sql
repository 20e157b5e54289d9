insert into penstock.kept_spark (pipeline, until, cuts)
values (%(name)s, %(until)s, %(cuts)s)
on conflict (pipeline) do update set until = excluded.until, cuts = excluded.cuts, seen_at = clock_timestamp()
