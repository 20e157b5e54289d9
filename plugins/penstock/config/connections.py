"""Where a database is and how to log in: read from an Airflow connection, handed to each kind of driver.

The password is in no representation and no error. Options (TLS and the like) are libpq's own keywords; a
misspelt one is refused, because a forgotten `sslmode` would quietly mean a connection in the clear.
"""

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from penstock.errors import ConfigError

_LIBPQ_WORDS = """
    channel_binding connect_timeout gssdelegation gssencmode gsslib hostaddr keepalives keepalives_count keepalives_idle
    keepalives_interval krbsrvname load_balance_hosts options passfile require_auth requirepeer sslcert sslcertmode
    sslcompression sslcrl sslcrldir sslkey sslmode ssl_max_protocol_version ssl_min_protocol_version sslnegotiation
    sslpassword sslrootcert sslsni target_session_attrs tcp_user_timeout
"""
# What Airflow's hooks read from the same connection, and what Penstock says by itself.
_IGNORED_WORDS = """
    application_name aws_conn_id azure_conn_id client_encoding cluster-identifier cursor enable_log_db_messages
    fallback_application_name log_db_messages log_sql redshift redshift-serverless region_name sqlalchemy_query
    sqlalchemy_scheme workgroup-name
"""
_LIBPQ = frozenset(_LIBPQ_WORDS.split())
_IGNORED = frozenset(_IGNORED_WORDS.split())
FIELDS = ("conn_type", "host", "port", "login", "password", "schema")
"""What we take of an Airflow connection, besides its extra."""
_FIELDS = {"host": "host", "port": "port", "user": "login", "password": "password", "dbname": "schema"}
"""Fields that an extra of the name of libpq's keyword overrides, as Airflow's hook has it: so lists of ports fit."""
_JDBC = ("sslmode", "sslrootcert")
_JDBC_SERVERS = {
    "any": "any",
    "read-write": "primary",
    "primary": "primary",
    "read-only": "secondary",
    "standby": "secondary",
    "prefer-standby": "preferSecondary",
}
"""What libpq calls `target_session_attrs`, in the JDBC driver's words."""
_VARIABLES = ("HOST", "PORT", "USER", "PASSWORD", "DATABASE", "OPTIONS")
_SCHEMES = ("postgres", "postgresql")
_DEFAULT_PORT = 5432


@dataclass(frozen=True)
class Connection:
    """Hold one database's address and login; `options` are further libpq keywords.

    Several hosts stand in `host` with commas between, and so do their ports, if they differ. Where passwords last for
    minutes, `renew` returns a new one for each login.
    """

    id: str
    host: str
    port: int | str
    user: str
    password: str = field(repr=False)
    database: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    renew: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    @property
    def secret(self) -> str:
        """Return the password for a login that begins now: for a driver, never for a log."""
        return self.renew() if self.renew else self.password

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """Return every host with its port."""
        hosts, ports = self.host.split(","), str(self.port).split(",")
        ports = ports * len(hosts) if len(ports) == 1 else ports
        return [(host, int(port)) for host, port in zip(hosts, ports, strict=True)]

    @property
    def address(self) -> str:
        """Name the place in a message, without the secret: `host:port, database "x", role "y"`."""
        places = ",".join(f"{host}:{port}" for host, port in self.hosts)
        return f'{places}, database "{self.database}", role "{self.user}"'

    def conninfo(self, **extra: str | int) -> str:
        """Return libpq's keyword string, the password included: for a driver, never for a log."""
        login = {"host": self.host, "port": self.port, "user": self.user, "password": self.secret}
        words: dict[str, str | int] = {**self.options, **login, "dbname": self.database, **extra}
        return " ".join(f"{name}={_libpq_quoted(str(value))}" for name, value in words.items())

    def jdbc_url(self) -> str:
        """Return the address for a JDBC driver; login and password go to it apart from the URL."""
        places = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        given = {name: self.options[name] for name in _JDBC if name in self.options}
        if "target_session_attrs" in self.options:
            given["targetServerType"] = _JDBC_SERVERS[self.options["target_session_attrs"]]
        words = urlencode(given, quote_via=quote)
        return f"jdbc:postgresql://{places}/{quote(self.database, safe='')}" + (f"?{words}" if words else "")

    def environment(self, prefix: str) -> dict[str, str]:
        """Return variables `PENSTOCK_<PREFIX>_HOST`, `_PORT`, ... which `from_prefix` reads back."""
        values = (self.host, str(self.port), self.user, self.secret, self.database, json.dumps(dict(self.options)))
        return {f"{_stem(prefix)}_{name}": value for name, value in zip(_VARIABLES, values, strict=True)}

    @classmethod
    def from_prefix(cls, prefix: str, environ: Mapping[str, str]) -> Self:
        """Read what `environment` wrote; raises ConfigError("connection-missing") naming the absent variable."""
        stem = _stem(prefix)
        try:
            host, port, user, password, database, options = (environ[f"{stem}_{name}"] for name in _VARIABLES)
        except KeyError as missing:
            raise ConfigError(
                "connection-missing",
                f"expected the environment variables {stem}_*, but {missing.args[0]} is not set; "
                "start this program through Penstock, which sets them",
            ) from None
        return cls(prefix.lower(), host, _port(prefix, port, host), user, password, database, json.loads(options))

    @classmethod
    def from_airflow(cls, conn_id: str, found: Mapping[str, Any], extra: Mapping[str, Any]) -> Self:
        """Take the `FIELDS` of an Airflow connection; raises ConfigError when they don't name a PostgreSQL database."""
        if found["conn_type"] not in _SCHEMES:
            raise _wrong(
                conn_id,
                f"expected the type postgres, got {found['conn_type']!r} instead; change the type, or name another connection",
            )
        if extra.get("iam"):
            raise _wrong(
                conn_id,
                "expected a login and a password, got the extra iam, a token that only Airflow's hook can ask for; run this "
                "as its DAG, or define a connection with a password for the command line",
            )
        fields = {**found, **{ours: extra[theirs] for theirs, ours in _FIELDS.items() if extra.get(theirs)}}
        place = _required(conn_id, "a host", fields["host"])
        return cls(
            conn_id,
            place,
            _port(conn_id, fields["port"] or _DEFAULT_PORT, place),
            _required(conn_id, "a login", fields["login"]),
            fields["password"] or "",
            _required(conn_id, "a database name in the field schema", fields["schema"]),
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
        return cls.from_airflow(conn_id, *(_from_json if value.startswith("{") else _from_uri)(conn_id, value))


Resolver = Callable[[str], Connection]


def _from_json(conn_id: str, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        data = json.loads(text)
        extra = data.get("extra") or {}
        extra = json.loads(extra) if isinstance(extra, str) else extra
    except ValueError:
        raise _wrong(conn_id, "expected JSON, got text that does not parse") from None
    return {name: data.get(name) for name in FIELDS}, extra


def _from_uri(conn_id: str, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        parts = urlsplit(text)
        # not parts.hostname: it lowers the case, which a folder of sockets would not survive
        login, _, address = parts.netloc.rpartition("@")
        host, port = _host_and_port(address)
        extra = _extra_of_query(parts.query)
    except ValueError:
        raise _wrong(conn_id, "expected a URI postgres://login:password@host:port/database") from None
    user, _, password = login.partition(":")
    values = (parts.scheme, unquote(host), port, *map(unquote, (user, password, parts.path.removeprefix("/"))))
    return dict(zip(FIELDS, values, strict=True)), extra


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


def _port(conn_id: str, value: int | str, hosts: str) -> int | str:
    """Return one port for all hosts, or libpq's list of one for each of them."""
    ports = [part.strip() or str(_DEFAULT_PORT) for part in str(value).split(",")]
    if not all(part.isdecimal() and 0 < int(part) < 1 << 16 for part in ports):
        raise _wrong(conn_id, "expected a port between 1 and 65535, got something else")
    if len(ports) not in (1, len(hosts.split(","))):
        raise _wrong(conn_id, f"expected one port, or one for each host, got {len(ports)}")
    return int(ports[0]) if len(ports) == 1 else ",".join(ports)


def _options(conn_id: str, extra: Mapping[str, Any]) -> dict[str, str]:
    unknown = [name for name in extra if name not in _LIBPQ | _IGNORED | _FIELDS.keys() | {"iam"}]
    if unknown:
        nearest = difflib.get_close_matches(unknown[0], sorted(_LIBPQ), n=1)
        hint = f"did you mean {nearest[0]!r}?" if nearest else "see libpq's connection keywords"
        raise _wrong(conn_id, f"expected libpq's keywords in the extra, got {unknown[0]!r}; {hint}")
    given = {name: value for name, value in extra.items() if name in _LIBPQ and value is not None}
    for name, value in given.items():
        if not isinstance(value, str | int | float):
            raise _wrong(conn_id, f"expected a text as the extra {name}, got {type(value).__name__} instead")
    options = {name: str(int(value)) if isinstance(value, bool) else str(value) for name, value in given.items()}
    wanted = options.get("target_session_attrs", "any")
    if wanted not in _JDBC_SERVERS:
        raise _wrong(conn_id, f"expected one of {', '.join(_JDBC_SERVERS)} as target_session_attrs, got {wanted!r}")
    return options


def _wrong(conn_id: str, problem: str) -> ConfigError:
    return ConfigError("connection-missing", f"connection {conn_id!r}: {problem}")


def _stem(prefix: str) -> str:
    return f"PENSTOCK_{prefix.upper()}"


def _libpq_quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
