"""The demo: a shop's database full of hard cases, a live load against it, and the main job driven from end to end.

`python -m demo` does the whole job and ends (`make demo`); `python -m demo up` leaves everything running (`make up`).
"""

import sys
from pathlib import Path

# The library is not installed but lies in plugins/, where Airflow looks for it; so does who runs us without `make`.
_PLUGINS = str(Path(__file__).resolve().parents[1] / "plugins")
if _PLUGINS not in sys.path:
    sys.path.append(_PLUGINS)
