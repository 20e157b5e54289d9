"""Shows a pipeline file that cannot be read as an import error in the UI; defines no DAG.

The other DAG files leave such a file out, so that one bad file never takes the other pipelines' DAGs away.
"""

from __future__ import annotations

import os

from penstock.config import load_pipelines
from penstock.orchestration.pipelines import folder

load_pipelines(folder(), dict(os.environ))
