"""An object store on one machine: S3Proxy, a server that speaks S3 in front of a folder.

`python -m stack.cluster.object_store` runs it. Its login comes by the environment in AWS's own variables and is handed on to
the server through a pipe: it is in no file and on no command line.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stack.spark import jars
from stack.spark.spark_conf import CATALOG

LANDING, WAREHOUSE = "landing", "warehouse"
REGION = "us-east-1"
ACCESS_KEY, SECRET_KEY = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"  # names, not secrets
ADDRESS = "PENSTOCK_STORE"
PYICEBERG = f"PYICEBERG_CATALOG__{CATALOG.upper()}__S3__"  # a `__` of the variable is a dot of the key
SERVER = jars.locked("s3proxy")
CLIENT = jars.locked("spark-s3")


@dataclass(frozen=True)
class ObjectStore:
    """One store as its clients see it: the address, and a login."""

    address: str
    access_key: str
    secret_key: str = field(repr=False)

    def environment(self) -> dict[str, str]:
        """Return what every client of the store finds in its environment; the secret is among it."""
        return {
            ADDRESS: self.address,
            ACCESS_KEY: self.access_key,
            SECRET_KEY: self.secret_key,
            f"{PYICEBERG}ENDPOINT": self.address,
            f"{PYICEBERG}REGION": REGION,
        }

    def options(self) -> dict[str, str]:
        """Return the options of a landing zone in this store, without the login."""
        return {
            "endpoint_override": self.address,
            "region": REGION,
            "access_key_env": ACCESS_KEY,
            "secret_key_env": SECRET_KEY,
        }


def spark_settings(address: str, catalog: str) -> dict[str, str]:
    """Return the settings by which Spark finds the store at `address`; drivers read the login from their environment."""
    prefix = f"spark.sql.catalog.{catalog}"
    return {
        f"{prefix}.warehouse": f"s3://{WAREHOUSE}",
        f"{prefix}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{prefix}.s3.endpoint": address,
        f"{prefix}.s3.path-style-access": "true",
        f"{prefix}.client.region": REGION,
    }


def properties(address: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Return S3Proxy's settings, the secret among them."""
    given = {
        "s3proxy.endpoint": address,
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": environ[ACCESS_KEY],
        "s3proxy.credential": environ[SECRET_KEY],
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": str(folder.resolve()),  # below a relative one it finds no file by a prefix
        "jclouds.identity": "unused",
        "jclouds.credential": "unused",
    }
    return "".join(f"{name}={value}\n" for name, value in given.items())


def main() -> None:
    """Become the server: it listens at the address and keeps each bucket as a folder."""
    parser = argparse.ArgumentParser(prog="python -m stack.cluster.object_store", description=__doc__)
    parser.add_argument("--address", required=True, help="such as http://127.0.0.1:9878")
    parser.add_argument("--folder", required=True, type=Path, help="where the buckets lie")
    parser.add_argument("--jars", required=True, type=Path, help="folder of the server's jars")
    args = parser.parse_args()
    for bucket in (LANDING, WAREHOUSE):
        (args.folder / bucket).mkdir(parents=True, exist_ok=True)
    reading, writing = os.pipe()
    os.write(writing, properties(args.address, args.folder, os.environ).encode())
    os.close(writing)
    os.set_inheritable(reading, True)
    java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java")
    class_path = jars.class_path(args.jars, SERVER)
    logging = f"-Dlogback.configurationFile={Path(__file__).with_name('s3proxy-logback.xml')}"
    command = (
        java,
        "-Xmx512m",
        logging,
        "-cp",
        class_path,
        "org.gaul.s3proxy.Main",
        "--properties",
        f"/dev/fd/{reading}",
    )
    os.execv(java, command)  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main()
