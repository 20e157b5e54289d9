insert into penstock.spent as known (pipeline, dag, tasks, seconds, cpu_seconds)
values (%(name)s, %(dag)s, 1, %(seconds)s, %(cpu_seconds)s)
on conflict (pipeline, dag) do update
set tasks = known.tasks + 1, seconds = known.seconds + excluded.seconds, cpu_seconds = known.cpu_seconds + excluded.cpu_seconds
