"""Take pyspark's Python modules from where they are installed and compiled: Spark puts a zip of the sources first.

A zip's modules are compiled at every start, which takes half a second. Both are of one version where Spark's home is the
installed package itself.
"""

from collections.abc import Mapping
from pathlib import Path

_ZIP = "python/lib/pyspark.zip"


def prefer_installed(path: list[str], environment: Mapping[str, str]) -> None:
    """Let the folder of the installed package stand where `path` has the zip of the same Spark home."""
    home = Path(environment.get("SPARK_HOME") or "/nowhere")
    archive = str(home / _ZIP)
    if archive in path and (home / "__init__.py").exists():
        path[path.index(archive)] = str(home.parent)
