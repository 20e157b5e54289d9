"""How far the clocks of ledger, source and Spark's drivers may be apart.

Iceberg refuses a snapshot that is more than a minute older than the newest one of its table. So a driver whose clock is ahead
would keep all others from writing until that time has come.
"""

TOLERANCE_SECONDS = 30
