drop index penstock.window_by_end
