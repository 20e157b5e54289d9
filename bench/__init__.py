"""Speed, memory and cost, as ratios against the server's own limit measured in the same run."""
