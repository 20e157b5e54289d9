"""The image of the Dockerfile as a folder of this machine, made by the file's own steps: what it copies, installs, runs.

Its packages are the locked ones of a deployment and no others, so what runs there cannot lean on a tool of development.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from stack.paths import Project

HERE = Project.here()
IN_IMAGE = "/opt/penstock"
LOCK = "requirements-runtime.txt"


def dockerfile() -> str:
    return (HERE.root / "Dockerfile").read_text()


def variables(image: Path, java_home: Path) -> dict[str, str]:
    """Return the file's ENV for a folder; Java and the rest of PATH are this machine's."""
    found = re.search(r"^ENV ((?:.*\\\n)*.*)$", dockerfile(), re.MULTILINE)
    assert found is not None
    given = dict(pair.split("=", 1) for pair in found[1].replace("\\\n", " ").split())
    given = {name: value.replace(IN_IMAGE, str(image)) for name, value in given.items()}
    return given | {"JAVA_HOME": str(java_home), "PATH": given["PATH"].replace("$PATH", os.environ["PATH"])}


def copied() -> list[str]:
    return re.findall(r"^COPY --chown=penstock (\S+) ", dockerfile(), re.MULTILINE)


def install(folder: Path, lock: Path) -> Path:
    """Make a virtual environment with the packages of a lock, by hash, and return its Python."""
    uv = Path(sys.prefix) / "bin" / "uv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    command: list[str | Path] = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--system-certs",
        "--python",
        python,
        "--require-hashes",
        "-r",
        lock,
    ]
    subprocess.run(command, check=True)
    return python


def build(image: Path, java_home: Path) -> Path:
    """Do the Dockerfile's steps in a new folder; jars that this checkout has already are not fetched again."""
    image.mkdir(parents=True)
    for name in copied():
        source = HERE.root / name
        if source.is_dir():
            shutil.copytree(source, image / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, image / name)
    install(image / ".venv", image / LOCK)
    (image / ".local" / "jars").mkdir(parents=True)
    for jar in HERE.jars.glob("*.jar"):
        (image / ".local" / "jars" / jar.name).symlink_to(jar.resolve())
    last = re.findall(r"^RUN ((?:.*\\\n)*.*)$", dockerfile(), re.MULTILINE)[-1]
    assert "stack setup" in last
    run(["sh", "-euc", last], image, variables(image, java_home))
    return image


def run(command: list[str], image: Path, environment: Mapping[str, str]) -> str:
    """Run a command in the image's folder with nothing in its environment but `environment`; return what it printed."""
    said = subprocess.run(
        command,
        cwd=image,
        env={"HOME": str(image), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout[-5000:]
    return said.stdout
