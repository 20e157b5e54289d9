"""The local stack: everything that Penstock needs around it on one machine, below `<project>/.local/`.

Two embedded PostgreSQL servers (source and control), a Java for Spark, Spark's jars and settings, Airflow's
four components. `python -m stack --help` lists the verbs; nothing in `plugins/` or `dags/` imports it.
"""

import sys
from pathlib import Path

# The library is not installed but lies in plugins/, where Airflow looks for it; so do we, for who runs us without `make`.
_PLUGINS = str(Path(__file__).resolve().parents[1] / "plugins")
if _PLUGINS not in sys.path:
    sys.path.append(_PLUGINS)
