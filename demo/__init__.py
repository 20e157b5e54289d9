"""The demo: a shop's database full of hard cases, a live load against it, and the main job driven from end to end.

`python -m demo` does the whole job and ends (`make demo`); `python -m demo up` leaves everything running (`make up`).
"""

import stack  # noqa: F401  # puts the library on sys.path, for who runs us without `make`
