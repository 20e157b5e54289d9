"""Texts of a pipeline file that another program parses later: Airflow, Spark, Iceberg, PostgreSQL, a browser.

Each is refused when the file is read, because later is too late: a bad cron fails in Airflow's scheduler, far away from
the file that holds it. What is accepted here, those programs accept too.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from croniter import croniter
from croniter.croniter import CroniterError
from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from penstock.config.store_options import FROM_ENVIRONMENT, S3_OPTIONS, STORES, store_of
from penstock.units import LOOKS

PRESETS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Airflow's names of schedules, and croniter's."""
_FIELDS = 5
_FIELD = re.compile(r"[0-9*,/?#-]*(?:[A-Za-z]{3}[0-9*,/?#-]*|[Ll]\d?)*")
_MEMORY = re.compile(r"[1-9][0-9]{0,9}[kmgt]", re.IGNORECASE)
_SPARK_SIZE = re.compile(r"[0-9]{1,12}([kmgtp]b?|b)?", re.IGNORECASE)
_SCALE = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_LEAST_MEMORY = 512 << 20
_SPARK_KEY = re.compile(r"spark\.[A-Za-z0-9_.\-]+")
_SPARK_SIZES = (".memory", ".memoryOverhead", ".maxResultSize", ".offHeap.size")
_COUNTS = (".cores", ".instances", ".parallelism", ".partitions", ".maxFailures")
_WHOLE = re.compile(r"[0-9]{1,18}")
FORMAT_VERSION = "3"
"""Iceberg's: merges write deletion vectors, which older ones lack."""
_WHOLE_PROPERTIES = ("-bytes", "-ms", "-count", ".num-retries", "-rows", "format-version")


def _cron(text: str) -> str:
    expression = PRESETS.get(text.strip(), text.strip())
    fields = expression.split()
    names = ", ".join(PRESETS)
    if len(fields) != _FIELDS or not all(_FIELD.fullmatch(field) for field in fields):
        raise ValueError(
            "expected a cron of five fields (minute, hour, day of month, month, day of week), such as '*/5 * * * *', "
            f"one of {names}, or null; got {text[:60]!r}"
        )
    try:
        croniter(expression, datetime(2026, 1, 1, tzinfo=UTC)).get_next()
    except (CroniterError, ValueError) as error:
        raise ValueError(f"expected a cron with a time that exists, got {text[:60]!r}: {error}") from None
    return " ".join(fields)


def _memory(text: str) -> str:
    size = text.strip()
    if not _MEMORY.fullmatch(size) or int(size[:-1]) * _SCALE[size[-1].lower()] < _LEAST_MEMORY:
        raise ValueError("expected a size of the JVM such as 2g or 1536m, 512m at least, with k, m, g or t and no b")
    return size


def _spark_conf(conf: dict[str, str]) -> dict[str, str]:
    for key, value in conf.items():
        if not _SPARK_KEY.fullmatch(key):
            raise ValueError(f"{key}: not a setting spark.<name>, which is all that spark-submit passes on")
        if not value or "\n" in value:
            raise ValueError(f"{key}: expected one line of text, got none or several")
        if key.endswith(_SPARK_SIZES) and not _SPARK_SIZE.fullmatch(value):
            raise ValueError(f"{key}: expected a size such as 512m or 2g")
        if key.endswith(_COUNTS) and not _WHOLE.fullmatch(value):
            raise ValueError(f"{key}: expected a whole number in quotes")
    return conf


def _properties(properties: dict[str, str]) -> dict[str, str]:
    for key, value in properties.items():
        if not key or not key.isascii() or not key.isprintable():
            raise ValueError(f"expected the name of an Iceberg table property, got {key!r}")
        if key.endswith(_WHOLE_PROPERTIES) and not _WHOLE.fullmatch(value):
            raise ValueError(f"{key}: expected a whole number in quotes")
        if key == "format-version" and value != FORMAT_VERSION:
            raise ValueError(f"{key}: expected {FORMAT_VERSION}, which has deletion vectors, got {value}")
    return properties


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or not text.isprintable() or " " in text:
        raise ValueError("expected an address such as https://wiki.example.com/penstock")
    return text


def _place(text: str) -> str:
    parts = urlsplit(text)
    if store_of(text) is None:
        raise ValueError(f"expected one of the stores that exist: {STORES}")
    if store_of(text) == "s3":
        if not parts.netloc:
            raise ValueError("expected a bucket, as s3://bucket/prefix")
        return text
    folder = unquote(parts.path) if parts.scheme == "file" and not parts.netloc else text
    if not PurePosixPath(folder).is_absolute() or PurePosixPath(folder) == PurePosixPath("/"):
        raise ValueError(
            f"expected {STORES}; a relative path would mean another folder for Airflow, Spark and the command line"
        )
    return text


def _target(text: str) -> str:
    known = all(re.fullmatch(r"(\{(namespace|schema|table)\}|[\w-])+", part) for part in text.split("."))
    if not known or "{table}" not in text:
        raise ValueError("expected names joined by dots that hold {table}, and may hold {namespace} and {schema}")
    return text


@dataclass(frozen=True)
class Shape:
    """Take texts of a form only, and refuse others with words that say what one looks like. An annotation for pydantic.

    Where a form has a `check` of its own, the pattern tells editors as much of it as a pattern can say.
    """

    pattern: str
    looks: str
    check: Callable[[str], str] | None = None

    def matches(self, text: str) -> bool:
        """Return whether a text has the form."""
        return re.fullmatch(self.pattern, text) is not None

    def refuse_other(self, text: str) -> str:
        """Return a text of the form; raises ValueError for another."""
        if not self.matches(text):
            raise ValueError(f"expected {self.looks}")
        return text

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check or self.refuse_other, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^(?:{self.pattern})$", LOOKS: self.looks}


_NAME_PART = r'(?:"(?P<{0}_quoted>(?:[^"]|"")+)"|(?P<{0}>[^".]+))'
TABLE_PATTERN = rf"{_NAME_PART.format('schema')}\.{_NAME_PART.format('table')}"
"""A pattern that chooses tables, with the groups `schema`, `schema_quoted`, `table` and `table_quoted`."""

_FIVE_FIELDS = r"\S+(?:\s+\S+){4}"
Cron = Annotated[
    str,
    Shape(rf"\s*(?:{'|'.join(PRESETS)}|{_FIVE_FIELDS})\s*", "a cron of five fields, such as */5 * * * *", _cron),
]
ConnectionId = Annotated[
    str,
    Shape(
        "[A-Za-z0-9_.-]{1,200}", "the id of an Airflow connection, letters, digits and _ . -, such as penstock_source"
    ),
]
_CHANNEL = Shape(
    r"[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)?",
    "the id of an Airflow connection with apprise URLs, such as team_chat, or <id>:<tag>",
)
Channel = Annotated[str, _CHANNEL]
NAME = Shape("[a-z][a-z0-9_]{0,47}", "a name of a-z, digits and _, a letter first, at most 48 characters, such as shop")
Name = Annotated[str, NAME]
TablePattern = Annotated[
    str,
    Shape(
        re.sub(r"\?P<\w+>", "", TABLE_PATTERN),
        "a pattern schema.table such as public.* or public.orders; a name that holds a dot, a star or a quote is written in "
        'double quotes: public."a.b"',
    ),
]
NthShare = Annotated[str, Shape("1/[1-9][0-9]{0,3}", "a share 1/N such as 1/10, N from 1 to 9999")]
Memory = Annotated[str, Shape(rf"\s*{_MEMORY.pattern[:-6]}[kmgtKMGT]\s*", "a size of the JVM such as 2g", _memory)]
SparkConf = Annotated[
    dict[str, str],
    AfterValidator(_spark_conf),
    Field(json_schema_extra={"propertyNames": {"pattern": f"^{_SPARK_KEY.pattern}$"}}),
]
Target = Annotated[str, Shape(r".*\{table\}.*", "names joined by dots that hold {table}", _target)]
StoreOptions = Annotated[
    dict[str, str],
    Field(
        json_schema_extra={
            "propertyNames": {"enum": [*S3_OPTIONS, *(f"{name}{FROM_ENVIRONMENT}" for name in S3_OPTIONS)]}
        }
    ),
]
Properties = Annotated[dict[str, str], AfterValidator(_properties)]


def _heartbeat(text: str) -> str:
    """Take an address or a channel; the address is a secret, so no message repeats it."""
    if "://" not in text:
        return _CHANNEL.refuse_other(text)
    try:
        return _web_address(text)
    except ValueError:
        raise ValueError(
            "expected an address that begins with https:// or http://, got a text of another form"
        ) from None


_ADDRESS = "https?://[^ ]+"
Heartbeat = Annotated[str, Shape(f"{_ADDRESS}|{_CHANNEL.pattern}", "an address to ping, or a channel", _heartbeat)]
WebAddress = Annotated[str, Shape(_ADDRESS, "an address such as https://wiki.example.com", _web_address)]
Place = Annotated[str, Shape("/.+|file:///.+|s3a?://[^/].*", STORES, _place)]
