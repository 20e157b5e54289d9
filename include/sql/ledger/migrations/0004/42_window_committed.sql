-- When a window's transactions committed, as the source claims: everything for a window of which that is not known.
alter table penstock.window add column committed tstzrange not null default '(,)'
