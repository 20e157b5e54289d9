update penstock.verification set finished_at = clock_timestamp() where number = %(number)s
