"""Which file system a landing URI means, and its options: the only place that knows about kinds of stores.

Options of `s3://bucket/prefix`: `endpoint_override`, `region`, `scheme`, `access_key`, `secret_key`,
`session_token`, `force_virtual_addressing`, `connect_timeout`, `request_timeout`. Any of them may be given as
`<option>_env`, which names the environment variable that holds it; a folder takes no options.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from penstock.errors import ConfigError


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false")
    return text.lower() == "true"


_S3_OPTIONS: dict[str, Callable[[str], Any]] = {
    "endpoint_override": str,
    "region": str,
    "scheme": str,
    "access_key": str,
    "secret_key": str,
    "session_token": str,
    "force_virtual_addressing": _flag,
    "connect_timeout": float,
    "request_timeout": float,
}
LANDING = "PENSTOCK_LANDING"
"""The variable by which a Spark driver gets what `hadoop` returned, as JSON."""
_FROM_ENVIRONMENT = "_env"
_S3_DEFAULTS = {"connect_timeout": "10", "request_timeout": "60"}


def resolve(uri: str, options: Mapping[str, str], environment: Mapping[str, str]) -> tuple[fs.FileSystem, str, str]:
    """Return the file system, the root's path in it, and the root's URI for Spark; raises ConfigError."""
    parts = urlsplit(uri)
    if not uri.strip():  # an empty variable, which would mean whatever folder the process runs in
        raise ConfigError("config-invalid", "landing.uri: expected a folder or s3://bucket/prefix, got nothing")
    if parts.scheme in ("s3", "s3a"):
        root = f"{parts.netloc}{parts.path}".rstrip("/")
        if not parts.netloc:
            raise ConfigError("config-invalid", f"landing.uri: expected s3://bucket/prefix, got {uri!r} instead")
        known = _options({**_S3_DEFAULTS, **options}, environment)
        # what fits into one part is one request instead of three
        return fs.S3FileSystem(**known, allow_delayed_open=True), root, f"s3a://{root}"
    if parts.scheme not in ("", "file") or parts.netloc:
        raise ConfigError(
            "config-invalid", f"landing.uri: expected a folder, file:///folder or s3://bucket/prefix, got {uri!r}"
        )
    if options:
        raise ConfigError("config-invalid", f"landing.options: a folder takes no options, got {sorted(options)}")
    root = str(Path(unquote(parts.path) if parts.scheme else uri).resolve())
    return fs.LocalFileSystem(), root, f"file://{root}"


def given(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options with each `<option>_env` replaced by what it names, for processes without that variable.

    Secrets may be among them: never write them down. Raises ConfigError("config-invalid").
    """
    found: dict[str, str] = {}
    for option, text in options.items():
        if option.endswith(_FROM_ENVIRONMENT):
            if text not in environment:
                raise ConfigError(
                    "config-invalid", f"landing.options.{option}: the environment variable {text} is not set"
                )
            found[option.removesuffix(_FROM_ENVIRONMENT)] = environment[text]
        else:
            found[option] = text
    return found


def hadoop(uri: str, options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings for this one bucket, so that Spark reaches it as we do; none for a folder.

    Secrets may be among them: never write them down. Raises ConfigError("config-invalid").
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("s3", "s3a"):
        return {}
    known = _options(options, environment)
    address = str(known.get("endpoint_override", ""))
    if address and "://" not in address:
        address = f"{known.get('scheme', 'https')}://{address}"
    wanted = {
        "endpoint": address,
        "endpoint.region": known.get("region", ""),
        "path.style.access": "true" if address and not known.get("force_virtual_addressing") else "",
        "access.key": known.get("access_key", ""),
        "secret.key": known.get("secret_key", ""),
        "session.token": known.get("session_token", ""),
    }
    return {f"fs.s3a.bucket.{parts.netloc}.{name}": value for name, value in wanted.items() if value}


def _options(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for option in options:
        name = option.removesuffix(_FROM_ENVIRONMENT)
        if name not in _S3_OPTIONS:
            nearest = difflib.get_close_matches(name, _S3_OPTIONS, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"expected one of {', '.join(_S3_OPTIONS)}"
            raise ConfigError("config-invalid", f"landing.options: unknown option {option!r}; {hint}")
    for name, text in given(options, environment).items():
        try:
            found[name] = _S3_OPTIONS[name](text)
        except ValueError as error:
            raise ConfigError("config-invalid", f"landing.options.{name}: {error}") from None
    return found
