"""Spark's classes, loaded and verified once, and kept as an archive that every later JVM maps into its memory.

Loading some fifteen thousand classes is half of what a small application costs. A JVM that finds that the archive
does not fit it (another Java, other jars) starts without, and says nothing.
Source: Java documentation, the java command, "Application Class Data Sharing" (dynamic archives).
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stack import ports
from stack.atomic_write import write_whole
from stack.spark import java

ARCHIVE = "spark-classes.jsa"
MADE_FOR = "spark-classes.txt"
TRAINING = Path(__file__).with_name("class_archive_training.py")


def options(folder: Path) -> str:
    """Return Java's options that use the archive of a folder of jars, to append to others; none where there is none."""
    archive = folder / ARCHIVE
    return f' "-XX:SharedArchiveFile={archive}" -Xlog:cds=off -Xlog:cds+dynamic=off' if archive.exists() else ""


def make(folder: Path, spark_home: Path, java_home: Path, class_path: str, log: Path) -> str:
    """Make the archive of these classes, unless it is there; return how that went.

    `class_path` must be the beginning of every application's. No folder of files may be on it: there Java refuses.
    """
    wanted = "\n".join(_made_for(class_path, java_home))
    known, archive = folder / MADE_FOR, folder / ARCHIVE
    if known.exists() and known.read_text() == wanted:
        return "unchanged" if archive.exists() else f"none, and applications start slower: {log} says why"
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".training-") as scratch:
        made = Path(scratch) / ARCHIVE
        command = [
            *(str(spark_home / "bin" / "spark-submit"), "--master", "local[1]", "--driver-class-path", class_path),
            *("--driver-java-options", f'{java.SHORT_LIVED} "-XX:ArchiveClassesAtExit={made}"'),
            *(str(TRAINING), scratch),
        ]
        environment = {
            "JAVA_HOME": str(java_home),
            "SPARK_CONF_DIR": str(Path(scratch) / "no-settings"),
            "SPARK_LOCAL_IP": ports.LOOPBACK,
            "PYSPARK_PYTHON": sys.executable,
        }
        ended = _run(command, os.environ | environment, log)
        if made.exists():
            made.rename(archive)
    if ended:  # a Java that makes none is not asked again; one that failed is
        write_whole(known, wanted)
    return "made" if archive.exists() else f"none, and applications start slower: {log} says why"


def _run(command: list[str], environment: dict[str, str], log: Path) -> bool:
    """Run the training; return whether it came to its end."""
    with log.open("w") as said:
        return subprocess.run(command, env=environment, stdout=said, stderr=said, check=False).returncode == 0


def _made_for(class_path: str, java_home: Path) -> Iterator[str]:
    """Yield what the archive depends on: Java, and each jar by name, size and time, as Java compares them."""
    yield (java_home / "release").read_text() if (java_home / "release").exists() else str(java_home)
    yield TRAINING.read_text()
    for part in class_path.split(os.pathsep):
        place = Path(part)
        for jar in sorted(place.parent.glob("*.jar")) if place.name == "*" else [place]:
            facts = jar.stat()
            yield f"{jar} {facts.st_size} {facts.st_mtime_ns}"
