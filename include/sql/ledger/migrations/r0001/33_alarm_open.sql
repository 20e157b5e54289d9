create unique index alarm_open on penstock.alarm (pipeline, slug, subject) where closed_at is null
