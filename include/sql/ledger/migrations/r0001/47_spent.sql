-- What the tasks of each of a pipeline's DAGs have used since it was known: of their processes, and of those that they have waited for.
create table penstock.spent (
    pipeline text not null,
    dag text not null,
    tasks bigint not null,
    seconds double precision not null,
    cpu_seconds double precision not null,
    primary key (pipeline, dag)
)
