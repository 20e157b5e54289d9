"""Which file system a landing URI means, opened with its options (`penstock.config.store_options`), for us and for Hadoop.

What a file system refuses is one of our errors: which zone, why, and what to do next.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from penstock.config.store_options import FROM_ENVIRONMENT, S3_OPTIONS, STORES, nearest
from penstock.errors import ConfigError, LakeError
from penstock.store_trouble import Trouble, trouble_of_os

LANDING = "PENSTOCK_LANDING"
"""The variable by which a Spark driver gets what `hadoop` returned, as JSON."""
_S3_DEFAULTS = {"connect_timeout": "10", "request_timeout": "60"}
RETRIES = 10
"""So often a request is made that a store answers by "slow down", an error of its own or not at all: for a minute or so."""


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
        return s3(**known), root, f"s3a://{root}"
    if parts.scheme not in ("", "file") or parts.netloc:
        raise ConfigError("config-invalid", f"landing.uri: expected {STORES}, got {uri!r}")
    if options:
        raise ConfigError("config-invalid", f"landing.options: a folder takes no options, got {sorted(options)}")
    root = str(Path(unquote(parts.path) if parts.scheme else uri).resolve())
    return fs.LocalFileSystem(), root, f"file://{root}"


def s3(**options: Any) -> fs.FileSystem:
    """Return an object store with a patience that outlasts a moment of too many requests."""
    retry = fs.AwsStandardS3RetryStrategy(max_attempts=RETRIES)
    # what fits into one part is one request instead of three
    return fs.S3FileSystem(**options, retry_strategy=retry, allow_delayed_open=True)


def given(options: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options with each `<option>_env` replaced by what it names, for processes without that variable.

    Secrets may be among them: never write them down. Raises ConfigError("config-invalid").
    """
    found: dict[str, str] = {}
    for option, text in options.items():
        if option.endswith(FROM_ENVIRONMENT):
            if text not in environment:
                raise ConfigError(
                    "config-invalid", f"landing.options.{option}: the environment variable {text} is not set"
                )
            found[option.removesuffix(FROM_ENVIRONMENT)] = environment[text]
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
        name = option.removesuffix(FROM_ENVIRONMENT)
        if name not in S3_OPTIONS:
            raise ConfigError(
                "config-invalid", f"landing.options: unknown option {option!r}; {nearest(name, S3_OPTIONS)}"
            )
    for name, text in given(options, environment).items():
        try:
            found[name] = S3_OPTIONS[name](text)
        except ValueError as error:
            raise ConfigError("config-invalid", f"landing.options.{name}: {error}") from None
    return found


@contextmanager
def unwritable(uri: str) -> Iterator[None]:
    """Turn OSError into LakeError("landing-unwritable"), or "landing-unreachable" where a store does not answer, or refuses us."""
    try:
        yield
    except OSError as error:
        found = trouble_of_os(error)
        if found is Trouble.BUSY or (found is Trouble.REFUSED and error.errno is None):  # a disk has a number for it
            raise _unreachable(uri, error) from error
        raise LakeError(
            "landing-unwritable",
            f"expected to write {uri}, got: {_reason(error)}; "
            "make room or fix the landing zone, then run again: nothing of this attempt is used",
        ) from error


@contextmanager
def unreachable(uri: str) -> Iterator[None]:
    """Turn OSError into LakeError("landing-unreachable")."""
    try:
        yield
    except OSError as error:
        raise _unreachable(uri, error) from error


def unread(uri: str, what: str, error: Exception) -> LakeError:
    """Say why a file that a manifest lists could not be read: the zone is in trouble, which proves nothing, or it is damaged."""
    if isinstance(error, OSError) and trouble_of_os(error):
        return _unreachable(uri, error)
    return missing(uri, f"{what} ({type(error).__name__})")


def missing(uri: str, what: str) -> LakeError:
    """Say that a file which a manifest lists is absent or damaged."""
    return LakeError(
        "landing-file-missing",
        f"expected the landing file {uri} as a manifest lists it, but {what}; restore it, or copy its table again",
    )


def _unreachable(uri: str, error: OSError) -> LakeError:
    return LakeError(
        "landing-unreachable",
        f"expected the landing zone to answer for {uri}, got: {_reason(error)}; "
        "check its address, credentials, rights and network, then run again",
    )


def _reason(error: OSError) -> str:
    return error.strerror or str(error).partition("\n")[0]
