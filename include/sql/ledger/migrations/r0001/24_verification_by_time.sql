create index verification_by_time on penstock.verification (pipeline, started_at)
