-- A digest of the window's messages as the server sent them, after the option `origin` of the peek; null for a window of before.
alter table penstock.window add column digest text
