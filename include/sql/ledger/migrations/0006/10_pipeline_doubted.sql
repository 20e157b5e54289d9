-- From here on the source has been found with another history: nothing ends that but reading the windows since as they were staged.
alter table penstock.pipeline add column doubted_from pg_lsn
