-- Every transaction of the source below it had ended when the catalog was looked at for this window.
alter table penstock.window add column oldest_xid bigint
