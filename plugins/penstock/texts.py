"""Texts of a pipeline file that another program parses later: Airflow, Spark, Iceberg, PostgreSQL, a browser.

Each is refused when the file is read, because later is too late: a bad cron fails in Airflow's scheduler, far away from
the file that holds it. What is accepted here, those programs accept too.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import unquote, urlsplit

from croniter import croniter
from croniter.croniter import CroniterError
from pydantic import AfterValidator, Field

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
        raise ValueError("expected a size of the JVM such as 2g or 1536m (k, m, g or t; no b; 512m at least)")
    return size


def _spark_conf(conf: dict[str, str]) -> dict[str, str]:
    for key, value in conf.items():
        if not _SPARK_KEY.fullmatch(key):
            raise ValueError(f"expected a setting spark.<name>, which is all that spark-submit passes on, got {key!r}")
        if not value or "\n" in value:
            raise ValueError(f"expected one line of text as the value of {key}, got none or several")
        if key.endswith(_SPARK_SIZES) and not _SPARK_SIZE.fullmatch(value):
            raise ValueError(f"expected a size such as 512m or 2g as the value of {key}")
        if key.endswith(_COUNTS) and not _WHOLE.fullmatch(value):
            raise ValueError(f"expected a whole number as the value of {key}")
    return conf


def _properties(properties: dict[str, str]) -> dict[str, str]:
    for key, value in properties.items():
        if not key or not key.isascii() or not key.isprintable():
            raise ValueError(f"expected the name of an Iceberg table property, got {key!r}")
        if key.endswith(_WHOLE_PROPERTIES) and not _WHOLE.fullmatch(value):
            raise ValueError(f"expected a whole number as the value of {key}")
        if key == "format-version" and value != FORMAT_VERSION:
            raise ValueError(f"expected format-version {FORMAT_VERSION}, which has deletion vectors, got {value}")
    return properties


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or not text.isprintable() or " " in text:
        raise ValueError("expected an address such as https://wiki.example.com/penstock")
    return text


def _place(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme in ("s3", "s3a") and parts.netloc:
        return text
    folder = unquote(parts.path) if parts.scheme == "file" and not parts.netloc else text
    if not PurePosixPath(folder).is_absolute() or PurePosixPath(folder) == PurePosixPath("/"):
        raise ValueError(
            "expected the absolute path of a folder, file:///folder or s3://bucket/prefix; a relative path would mean "
            "another folder for Airflow, Spark and the command line"
        )
    return text


Cron = Annotated[str, AfterValidator(_cron)]
ConnectionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,200}$")]
Memory = Annotated[str, AfterValidator(_memory)]
SparkConf = Annotated[dict[str, str], AfterValidator(_spark_conf)]
Properties = Annotated[dict[str, str], AfterValidator(_properties)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
Place = Annotated[str, AfterValidator(_place)]
