-- How the lake stood at each look of slot health, for charts: how far behind its tables are, how large lake and landing zone; the cuts since
-- the look before; and what merges and captures have used since they were counted.
create table penstock.lake_sample (
    pipeline text not null references penstock.pipeline on delete cascade,
    at timestamptz not null default clock_timestamp(),
    median_seconds double precision,
    worst_seconds double precision,
    worst_oid oid,
    lake_bytes bigint,
    landing_bytes bigint not null,
    last_cut bigint not null,
    cuts bigint not null,
    changes bigint not null,
    cut_seconds double precision not null,
    merge_cpu_seconds double precision,
    capture_cpu_seconds double precision,
    primary key (pipeline, at)
)
