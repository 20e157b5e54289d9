"""Where a database is and how to log in: read from an Airflow connection, handed to each kind of driver.

The password is in no representation and no error. Options (TLS and the like) are libpq's own keywords; a
misspelt one is refused, because a forgotten `sslmode` would quietly mean a connection in the clear.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from penstock.errors import ConfigError

_LIBPQ_WORDS = """
    channel_binding connect_timeout gssencmode gsslib hostaddr keepalives keepalives_count keepalives_idle
    keepalives_interval krbsrvname load_balance_hosts options passfile require_auth sslcert sslcertmode sslcrl
    sslcrldir sslkey sslmode ssl_max_protocol_version ssl_min_protocol_version sslnegotiation sslpassword
    sslrootcert sslsni target_session_attrs tcp_user_timeout
"""
# What Airflow's own hook reads from the same connection, and libpq does not know.
_AIRFLOW_WORDS = """
    aws_conn_id client_encoding cluster-identifier cursor enable_log_db_messages iam log_sql redshift
    redshift-serverless region_name sqlalchemy_query sqlalchemy_scheme workgroup-name
"""
_LIBPQ = frozenset(_LIBPQ_WORDS.split())
_AIRFLOW = frozenset(_AIRFLOW_WORDS.split())
_JDBC = ("sslmode", "sslrootcert")
_SCHEMES = ("postgres", "postgresql")
_DEFAULT_PORT = 5432


@dataclass(frozen=True)
class Connection:
    """Hold one database's address and login; `options` are further libpq keywords."""

    id: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """Name the place in a message, without the secret: `host:port, database "x", role "y"`."""
        return f'{self.host}:{self.port}, database "{self.database}", role "{self.user}"'

    def conninfo(self, **extra: str | int) -> str:
        """Return libpq's keyword string, the password included: for a driver, never for a log."""
        words: dict[str, str | int] = {**self.options, **self._login(), "dbname": self.database, **extra}
        return " ".join(f"{name}={_libpq_quoted(str(value))}" for name, value in words.items())

    def uri(self, **extra: str | int) -> str:
        """Return libpq's URI, the password included: for a driver, never for a log."""
        words = urlencode({**self.options, **self._login(), **extra}, quote_via=quote)
        return f"postgresql:///{quote(self.database, safe='')}?{words}"

    def jdbc_url(self) -> str:
        """Return the address for a JDBC driver; login and password go to it apart from the URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        words = urlencode({name: self.options[name] for name in _JDBC if name in self.options}, quote_via=quote)
        return f"jdbc:postgresql://{host}:{self.port}/{quote(self.database, safe='')}" + (f"?{words}" if words else "")

    def environment(self, prefix: str) -> dict[str, str]:
        """Return variables `PENSTOCK_<PREFIX>_HOST`, `_PORT`, ... which `from_prefix` reads back."""
        values = {
            "HOST": self.host,
            "PORT": str(self.port),
            "USER": self.user,
            "PASSWORD": self.password,
            "DATABASE": self.database,
            "OPTIONS": json.dumps(dict(self.options)),
        }
        return {f"{_stem(prefix)}_{name}": value for name, value in values.items()}

    @classmethod
    def from_prefix(cls, prefix: str, environ: Mapping[str, str]) -> Self:
        """Read what `environment` wrote; raises ConfigError("connection-missing") naming the absent variable."""
        stem = _stem(prefix)
        try:
            host, port, user, password, database = (
                environ[f"{stem}_{name}"] for name in ("HOST", "PORT", "USER", "PASSWORD", "DATABASE")
            )
        except KeyError as missing:
            raise ConfigError(
                "connection-missing",
                f"expected the environment variables {stem}_*, but {missing.args[0]} is not set; "
                "start this program through Penstock, which sets them",
            ) from None
        options = json.loads(environ.get(f"{stem}_OPTIONS", "{}"))
        return cls(prefix.lower(), host, _port(prefix, port), user, password, database, options)

    @classmethod
    def from_airflow(
        cls,
        conn_id: str,
        *,
        conn_type: str | None,
        host: str | None,
        port: int | str | None,
        login: str | None,
        password: str | None,
        schema: str | None,
        extra: Mapping[str, Any],
    ) -> Self:
        """Take the fields of an Airflow connection; raises ConfigError when they don't name a PostgreSQL database."""
        if conn_type not in _SCHEMES:
            raise _wrong(conn_id, f"expected the type postgres, got {conn_type!r} instead")
        return cls(
            conn_id,
            _required(conn_id, "a host", host),
            _port(conn_id, port or _DEFAULT_PORT),
            _required(conn_id, "a login", login),
            password or "",
            _required(conn_id, "a database name in the field schema", schema),
            _options(conn_id, extra),
        )

    @classmethod
    def from_airflow_environment(cls, conn_id: str, environ: Mapping[str, str]) -> Self:
        """Read `AIRFLOW_CONN_<ID>`, in either of Airflow's two forms (JSON, URI).

        Raises ConfigError("connection-missing") when the variable is absent or unreadable; its value is never shown.
        """
        name = f"AIRFLOW_CONN_{conn_id.upper()}"
        value = environ.get(name, "").strip()
        if not value:
            raise ConfigError(
                "connection-missing",
                f"expected the connection {conn_id!r}, but {name} is not set; "
                "define it in the environment or, under Airflow, as a connection",
            )
        fields = _from_json(conn_id, value) if value.startswith("{") else _from_uri(conn_id, value)
        return cls.from_airflow(conn_id, **fields)

    def _login(self) -> dict[str, str | int]:
        return {"host": self.host, "port": self.port, "user": self.user, "password": self.password}


Resolver = Callable[[str], Connection]


def _from_json(conn_id: str, text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
        extra = data.get("extra") or {}
        extra = json.loads(extra) if isinstance(extra, str) else extra
    except ValueError:
        raise _wrong(conn_id, "expected JSON, got text that does not parse") from None
    fields = {name: data.get(name) for name in ("conn_type", "host", "port", "login", "password", "schema")}
    return {**fields, "extra": extra}


def _from_uri(conn_id: str, text: str) -> dict[str, Any]:
    try:
        parts = urlsplit(text)
        # not parts.hostname: it lowers the case, which a folder of sockets would not survive
        login, _, address = parts.netloc.rpartition("@")
        host, port = _host_and_port(address)
        extra = _extra_of_query(parts.query)
    except ValueError:
        raise _wrong(conn_id, "expected a URI postgres://login:password@host:port/database") from None
    user, _, password = login.partition(":")
    return {
        "conn_type": parts.scheme,
        "host": unquote(host),
        "port": port,
        "login": unquote(user),
        "password": unquote(password),
        "schema": unquote(parts.path.removeprefix("/")),
        "extra": extra,
    }


def _extra_of_query(query: str) -> dict[str, Any]:
    words: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    # Airflow writes an extra that is not flat as JSON in this one word
    return json.loads(words["__extra__"]) if "__extra__" in words else words


def _host_and_port(address: str) -> tuple[str, str | None]:
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        return host, rest.removeprefix(":") or None
    host, _, port = address.partition(":")
    return host, port or None


def _required(conn_id: str, what: str, value: str | None) -> str:
    if not value:
        raise _wrong(conn_id, f"expected {what}, got none")
    return value


def _port(conn_id: str, value: int | str) -> int:
    try:
        number = int(value)
    except ValueError:
        number = 0
    if not 0 < number < 1 << 16:
        raise _wrong(conn_id, "expected a port between 1 and 65535, got something else")
    return number


def _options(conn_id: str, extra: Mapping[str, Any]) -> dict[str, str]:
    unknown = [name for name in extra if name not in _LIBPQ | _AIRFLOW]
    if unknown:
        nearest = difflib.get_close_matches(unknown[0], sorted(_LIBPQ), n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else "see libpq's connection keywords"
        raise _wrong(conn_id, f"expected libpq's keywords in the extra, got {unknown[0]!r}; {hint}")
    return {name: str(value) for name, value in extra.items() if name in _LIBPQ}


def _wrong(conn_id: str, problem: str) -> ConfigError:
    return ConfigError("connection-missing", f"connection {conn_id!r}: {problem}")


def _stem(prefix: str) -> str:
    return f"PENSTOCK_{prefix.upper()}"


def _libpq_quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
