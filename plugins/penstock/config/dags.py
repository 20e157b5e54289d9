"""The DAGs of a pipeline: which there are, when each runs, and which have to be unpaused together."""

KEEP_UNPAUSED, BY_SCHEDULE, BY_HAND = "keep unpaused", "by schedule", "by hand"
WHEN = {
    "capture": KEEP_UNPAUSED,
    "merge": KEEP_UNPAUSED,
    "slot_health": KEEP_UNPAUSED,
    "resync": KEEP_UNPAUSED,
    "changelog": BY_SCHEDULE,
    "maintain": BY_SCHEDULE,
    "verify": BY_SCHEDULE,
    "bootstrap": BY_HAND,
    "recover": BY_HAND,
    "replay": BY_HAND,
    "resume": BY_HAND,
    "skip_transaction": BY_HAND,
    "teardown": BY_HAND,
}
"""When the DAG of each verb runs: its tag, and the beginning of its description."""
MAIN_JOB = ("capture", "merge")
"""The two that bring changes from the source to the lake; the others watch them, mend, or prove."""
STARTED = ("bootstrap", *(verb for verb, when in WHEN.items() if when != BY_HAND))
"""What a pipeline that begins has to have unpaused: the bootstrap, and all that no person starts."""
NEEDED = ("bootstrap", *(verb for verb, when in WHEN.items() if when == KEEP_UNPAUSED))
"""Those of them that every pipeline has: some others are there only where the file asks for them."""
