-- The newest daily summary: for which time of its schedule, who has taken it on, and when it was sent.
create table penstock.summary (
    pipeline text primary key references penstock.pipeline on delete cascade,
    due_at timestamptz not null,
    claimed_at timestamptz,
    sent_at timestamptz
)
