update penstock.alarm set last_notified_at = %(at)s, last_notified_level = level where number = %(number)s
