"""A real S3 server for tests: S3Proxy, started as `make cluster-test` and the containers start it."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

from stack import ports
from stack.cluster import object_store
from stack.cluster.object_store import ObjectStore
from stack.paths import Project
from stack.spark import jars


@contextmanager
def real_store(java_home: Path, folder: Path) -> Iterator[tuple[ObjectStore, int]]:
    """Lend a store as its clients see it, and its process; its buckets are folders in `folder`."""
    project = Project.here()
    if missing := jars.missing(project.jars, object_store.SERVER):
        jars.fetch(missing, project.jars, java_home, project.logs / "fetch-jars.log")
    store = ObjectStore(f"http://127.0.0.1:{ports.choose()}", "penstock", "only-for-tests")
    where = ("--address", store.address, "--folder", str(folder), "--jars", str(project.jars))
    process = subprocess.Popen(
        [sys.executable, "-m", "stack.cluster.object_store", *where],
        env=os.environ | store.environment() | {"JAVA_HOME": str(java_home), "PYTHONPATH": str(project.root)},
    )
    try:
        while not _answers(store.address):
            assert process.poll() is None, "the store ended"
            time.sleep(0.2)
        yield store, process.pid
    finally:
        process.terminate()
        process.wait()


def _answers(address: str) -> bool:
    try:
        urlopen(address, timeout=5)
    except HTTPError:
        return True  # it refuses who does not log in
    except OSError:
        return False
    return True
