create unique index window_planned on penstock.window (pipeline) where state = 'planned'
