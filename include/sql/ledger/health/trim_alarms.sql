delete from penstock.alarm where pipeline = %(name)s and closed_at < %(before)s
