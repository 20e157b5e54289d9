-- Every row was seen to be equal at this position, or later; `verified_at` is when the last of them was.
alter table penstock.table
    add column verified_through pg_lsn,
    add column verified_at timestamptz,
    add column differs boolean not null default false
