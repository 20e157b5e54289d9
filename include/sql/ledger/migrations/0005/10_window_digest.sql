-- A digest of the window's messages as the server sent them; null for an empty window.
alter table penstock.window add column digest text
