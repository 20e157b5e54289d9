update penstock.pipeline set source_time = %(source_time)s where name = %(name)s and position = %(position)s
