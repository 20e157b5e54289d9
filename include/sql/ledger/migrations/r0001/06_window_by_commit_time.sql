create index window_by_commit_time on penstock.window using gist (committed) where state <> 'planned'
