create index alarm_by_time on penstock.alarm (pipeline, opened_at)
