-- Of a peek's messages all but the logical ones (M), and of these the event trigger's, as far as it is proved that it wrote them. A logical
-- message is M, flags (1: transactional), 8 bytes of LSN, the prefix up to a NUL, 4 bytes of length, the content.
where case
  when get_byte(data, 0) <> ascii('M') then true
  when octet_length(data) <= {most} and substr(data, 2, 1) = '\x01' and substr(data, 11, {size}) = {prefix}
    then penstock_ddl.wrote(xid, substr(data, {content}))
  else false
end
