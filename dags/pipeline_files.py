"""Shows every pipeline file that cannot be used as an import error in Airflow's UI; defines no DAG.

The other DAG files leave such a file out: Airflow schedules no DAG of a file with an import error, so one bad pipeline
file would stop them all.
"""

from pathlib import Path

from penstock.config.paths import folder
from penstock.errors import ConfigError
from penstock.orchestration.dags import problems

if found := problems(Path(__file__).parent):
    raise ConfigError(
        "config-invalid",
        f"expected pipeline files in {folder()} that can be used, got {len(found)} that cannot; they have no DAGs, and their "
        "slots keep WAL. Correct them, see docs/runbooks/config-invalid.md:\n" + "\n".join(found),
    )
