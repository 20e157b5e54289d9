-- Since when a table is paused, or paused time and again: copies that do not help are made ever more rarely.
alter table penstock.table add column paused_at timestamptz
