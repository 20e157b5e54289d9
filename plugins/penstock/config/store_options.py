"""Which stores can hold the landing zone, and the options of each: known without opening one.

Any option may be given as `<option>_env`, which names the environment variable that holds it; a folder takes no options.
"""

import difflib
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("expected true or false, in quotes")
    return text.lower() == "true"


def _positive(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError("expected a number of seconds, in quotes, such as '10'")
    return seconds


def _scheme(text: str) -> str:
    if text not in ("http", "https"):
        raise ValueError("expected http or https")
    return text


STORES = "the absolute path of a folder, file:///folder, or s3://bucket/prefix"
S3_OPTIONS: dict[str, Callable[[str], Any]] = {
    "endpoint_override": str,
    "region": str,
    "scheme": _scheme,
    "access_key": str,
    "secret_key": str,
    "session_token": str,
    "force_virtual_addressing": _flag,
    "connect_timeout": _positive,
    "request_timeout": _positive,
}
FROM_ENVIRONMENT = "_env"


def store_of(uri: str) -> str | None:
    """Return `folder` or `s3`; None for a store that is not known."""
    scheme = urlsplit(uri).scheme
    return {"": "folder", "file": "folder", "s3": "s3", "s3a": "s3"}.get(scheme)


def refuse_options(uri: str, options: dict[str, str]) -> None:
    """Raise ValueError, `<option>: <why>`, for an option that the URI's store has not, or a value that it cannot be."""
    for option, text in options.items():
        if store_of(uri) == "folder":
            raise ValueError(f"{option}: unknown option; a folder takes none")
        name = option.removesuffix(FROM_ENVIRONMENT)
        if name not in S3_OPTIONS:
            raise ValueError(f"{option}: unknown option of an s3:// store; {nearest(name, S3_OPTIONS)}")
        if not option.endswith(FROM_ENVIRONMENT):
            try:
                S3_OPTIONS[name](text)
            except ValueError as error:
                raise ValueError(f"{option}: {error}") from None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: the nearest that exists, or all of them."""
    names = list(known)
    found = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {found[0]!r}?" if found else f"expected one of {', '.join(names)}"
