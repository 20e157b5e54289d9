-- Of a peek's messages all but the logical ones (M).
where get_byte(data, 0) <> ascii('M')
