-- A table that could not be read on one side is a finding of its own, with the cause.
alter table penstock.verified
    drop constraint verified_outcome_check,
    drop constraint verified_check1,
    add constraint verified_outcome_check check (outcome in ('equal', 'differs', 'skipped', 'unreadable')),
    add constraint verified_reason_check check ((outcome in ('skipped', 'unreadable')) = (reason is not null))
