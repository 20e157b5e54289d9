-- What it found of one table, or of one share of its keys; share 1 of 1 is all rows. A table that could not be read on
-- one side is a finding of its own, with the cause.
create table penstock.verified (
    verification bigint not null references penstock.verification on delete cascade,
    oid oid not null,
    schema text not null,
    name text not null,
    share integer not null default 1,
    shares integer not null default 1,
    outcome text not null check (outcome in ('equal', 'differs', 'skipped', 'unreadable')),
    reason text,
    source_rows bigint not null default 0,
    lake_rows bigint not null default 0,
    missing bigint not null default 0,
    extra bigint not null default 0,
    different bigint not null default 0,
    details jsonb not null default '{}',
    verified_at timestamptz not null default clock_timestamp(),
    primary key (verification, oid, share),
    check (share between 1 and shares),
    constraint verified_reason_check check (outcome not in ('skipped', 'unreadable') or reason is not null)
)
