-- How the publication published at the last look, with the version of its row in the source's catalog.
alter table penstock.pipeline add column publishing jsonb
