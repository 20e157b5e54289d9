update penstock.pipeline set merge_attempt = %(attempt)s where name = %(name)s
