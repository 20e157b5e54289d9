-- By how many seconds a time, in milliseconds since 1970, is ahead of this server's clock.
select %(stamped)s / 1000.0 - extract(epoch from clock_timestamp())
