delete from penstock.window where pipeline = %(name)s and state = 'planned'
