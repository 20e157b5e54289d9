"""The passwords and keys of the local stack: generated once, kept in one file that only its owner reads."""

import base64
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from stack.atomic_write import OWNER_ONLY, write_private
from stack.errors import StackError


def _password() -> str:
    return secrets.token_urlsafe(24)


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def _secret(make: Callable[[], str] = _password) -> str:
    made: str = field(default_factory=make, repr=False)
    return made


@dataclass(frozen=True)
class Secrets:
    """Every secret of the local stack; none is shown in a representation."""

    source_superuser: str = _secret()
    control_superuser: str = _secret()
    shop_app: str = _secret()
    penstock_capture: str = _secret()
    penstock_reader: str = _secret()
    penstock: str = _secret()
    airflow: str = _secret()
    store: str = _secret()
    airflow_login: str = _secret()
    airflow_fernet_key: str = _secret(_fernet_key)
    airflow_jwt: str = _secret(lambda: secrets.token_hex(64))
    airflow_session: str = _secret(lambda: secrets.token_hex(32))

    @classmethod
    def load(cls, path: Path) -> "Secrets":
        """Read the file; make what it lacks (everything, the first time) and write it back."""
        kept = _read(path)
        known = {each.name for each in fields(cls)}
        loaded = cls(**{name: value for name, value in kept.items() if name in known})
        if asdict(loaded) != kept or path.stat().st_mode & 0o777 != OWNER_ONLY:
            write_private(path, json.dumps(asdict(loaded), indent=2) + "\n")
        return loaded


def _read(path: Path) -> dict[str, str]:
    try:
        kept = json.loads(path.read_text())
        return {str(name): str(value) for name, value in kept.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, AttributeError):
        raise StackError(
            f"the generated passwords in {path}",
            "the file is not legible JSON",
            "restore it, or start over with `make clean` (the demo's data is lost)",
        ) from None
