"""The jars that Spark and the object store need besides their own, fetched once, each with a pinned checksum.

They are fetched by the dependency client that comes with Spark (Ivy), from the repository that it knows by itself;
`PENSTOCK_MAVEN_MIRROR` names another (an address or a file: folder in Maven's layout). Later runs need no network.
"""

import hashlib
import os
import shutil
import ssl
import subprocess
import tempfile
import urllib.request
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.utils import CryptographyDeprecationWarning

from stack.atomic_write import write_private
from stack.errors import StackError

MIRROR = "PENSTOCK_MAVEN_MIRROR"
TRUST_PASSWORD = "changeit"  # noqa: S105  # Java's customary word for a store that holds no secret
CERTIFICATE_BUNDLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")

MIRROR_SETTINGS = """<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers><ibiblio name="mirror" m2compatible="true" root={root}/></resolvers>
</ivysettings>
"""
# Each artefact by itself: what it depends on is pinned too, or not wanted.
WANTED = """<ivy-module version="2.0">
  <info organisation="penstock" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>{dependencies}</dependencies>
</ivy-module>
"""
DEPENDENCY = "<dependency org={org} name={name} rev={rev} conf='default->master' transitive='false'/>"


@dataclass(frozen=True)
class Jar:
    """One artefact of a Maven repository, and what its bytes must be."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Return the file's name, here and in the repository."""
        return f"{self.name}-{self.version}.jar"

    def is_whole(self, path: Path) -> bool:
        """Return whether `path` holds exactly this artefact."""
        if not path.exists():
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


ICEBERG = Jar(
    "org.apache.iceberg",
    "iceberg-spark-runtime-4.1_2.13",
    "1.12.0",
    "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82",
)
POSTGRESQL = Jar(
    "org.postgresql",
    "postgresql",
    "42.7.14",
    "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
)
JARS = (ICEBERG, POSTGRESQL)


def locked(name: str) -> tuple[Jar, ...]:
    """Read the list `<name>.lock` next to this module: per line organisation:name:version and the SHA-256; `#` begins a comment."""
    lines = Path(__file__).with_name(f"{name}.lock").read_text().splitlines()
    fields = (line.replace(":", " ").split() for line in lines if line and not line.startswith("#"))
    return tuple(Jar(*each) for each in fields)


def class_path(folder: Path, jars: Sequence[Jar] = JARS) -> str:
    """Return the class path of jars in `folder`."""
    return os.pathsep.join(str(folder / jar.file_name) for jar in jars)


def missing(folder: Path, jars: Sequence[Jar] = JARS) -> list[Jar]:
    """List the jars that `folder` does not hold byte for byte."""
    return [jar for jar in jars if not jar.is_whole(folder / jar.file_name)]


def fetch(jars: Sequence[Jar], folder: Path, java_home: Path, log: Path) -> None:
    """Put jars into `folder`, whole and checked, or raise `StackError` and leave the folder as it was."""
    folder.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as work:
        with log.open("w") as sink:
            command = [str(part) for part in _command(jars, Path(work), java_home)]
            status = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink).returncode
        for jar in jars:
            got = Path(work) / jar.file_name
            if not got.exists():
                raise _not_fetched(jar, folder, log)
            if not jar.is_whole(got):
                raise StackError(
                    f"{jar.file_name} with the SHA-256 {jar.sha256}",
                    "the repository sent other bytes",
                    f"check the network and ${MIRROR}; nothing was kept",
                    log,
                )
        if status != 0:
            raise _not_fetched(jars[0], folder, log)
        for jar in jars:
            shutil.move(Path(work) / jar.file_name, folder / jar.file_name)


def _not_fetched(jar: Jar, folder: Path, log: Path) -> StackError:
    return StackError(
        f"to fetch {jar.organisation}:{jar.name}:{jar.version} from the Maven repository",
        "it could not be fetched",
        f"check the network, or set {MIRROR} to a repository that this machine reaches, or put the file into {folder}",
        log,
    )


def _command(jars: Sequence[Jar], work: Path, java_home: Path) -> Iterator[str | Path]:
    yield from (java_home / "bin" / "java", f"-Divy.default.ivy.user.dir={work / 'ivy'}")
    yield from _trust(work)
    yield from _proxies(urllib.request.getproxies())
    yield from ("-jar", _client())
    if mirror := os.environ.get(MIRROR):
        settings = work / "settings.xml"
        write_private(settings, MIRROR_SETTINGS.format(root=quoteattr(mirror)))
        yield from ("-settings", settings)
    wanted = work / "wanted.xml"
    write_private(wanted, WANTED.format(dependencies="".join(map(_dependency, jars))))
    yield from ("-ivy", wanted, "-confs", "default")
    yield from ("-retrieve", work / "[artifact]-[revision].[ext]")


def _dependency(jar: Jar) -> str:
    return DEPENDENCY.format(org=quoteattr(jar.organisation), name=quoteattr(jar.name), rev=quoteattr(jar.version))


def _client() -> Path:
    spec = find_spec("pyspark")
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for client in Path(folder, "jars").glob("ivy-*.jar"):
            return client
    raise StackError("the package pyspark with its jars", "it is not installed", "run `make setup`")


def _trust(work: Path) -> Iterator[str]:
    """Let Java trust what this machine trusts: its own list knows nothing of a company's certificates."""
    certificates = [pkcs12.PKCS12Certificate(found, None) for found in _trusted()]
    if certificates:
        store = work / "trust.p12"
        encryption = BestAvailableEncryption(TRUST_PASSWORD.encode())
        store.write_bytes(pkcs12.serialize_java_truststore(certificates, encryption))
        yield f"-Djavax.net.ssl.trustStore={store}"
        yield f"-Djavax.net.ssl.trustStorePassword={TRUST_PASSWORD}"


def _trusted() -> list[x509.Certificate]:
    context = ssl.create_default_context()
    for variable in CERTIFICATE_BUNDLES:
        if bundle := os.environ.get(variable):
            context.load_verify_locations(bundle)
    with warnings.catch_warnings(action="ignore", category=CryptographyDeprecationWarning):
        return [x509.load_der_x509_certificate(found) for found in context.get_ca_certs(binary_form=True)]


def _proxies(found: Mapping[str, str]) -> Iterator[str]:
    """Pass Java the proxies that every other program reads from the environment."""
    for scheme in ("http", "https"):
        proxy = urlsplit(found.get(scheme, ""))
        if proxy.hostname:
            yield f"-D{scheme}.proxyHost={proxy.hostname}"
            yield f"-D{scheme}.proxyPort={proxy.port or 80}"
