"""What the source's drivers complain about, put into our own kinds of error.

The SQLSTATE decides, with the English text where one SQLSTATE stands for several things. Only the server's
primary message is repeated, and only from the classes of error that cannot hold values of rows; DETAIL, CONTEXT
and STATEMENT never are. Source: PostgreSQL documentation, "PostgreSQL Error Codes"; messages of versions 14 to 18.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import adbc_driver_manager
import psycopg

from penstock.errors import SourceError
from penstock.source.error_rules import OTHER, RULES, UNREACHABLE, Rule

# Connections, features, transactions, logins, names, resources, states, operators, systems, the server's inside.
# Left out: data (22), constraints (23), user code (38, 39, P0): their messages quote what they stumbled over.
_SPEAKABLE = re.compile(r"(08|0A|25|28|3D|3F|40|42|53|54|55|57|58|XX)...")
# What libpq and its wrappers say before there is a session: names and reasons, never a value.
_CONNECTING = re.compile(
    "connection to server|translate host name|resolve host|connection is (closed|lost)|connection timeout"
    "|server closed the connection|SSL|invalid .+ value"
)
_HEAD = re.compile(r".*(?:failed|is bad|connect|ERROR|FATAL): +")
_UNSPOKEN = "a message that may quote a row's values and is not shown; it is in the server's log"


def translate(error: BaseException, place: str) -> SourceError:
    """Return a driver's error as one of our kinds; `place` says where the source is, without a secret."""
    rule = _rule(error, _state(error), _primary(error))
    return SourceError(rule.slug, f"expected {place} {rule.expected}, got: {_shown(error, rule)}; {rule.next_step}")


def shown(error: BaseException) -> str:
    """Return what the server said, as far as it may be repeated, with its SQLSTATE."""
    return _shown(error, _rule(error, _state(error), _primary(error)))


@contextmanager
def translating(place: str) -> Iterator[None]:
    """Raise every error of the drivers inside as a SourceError, without the driver's own words behind it."""
    try:
        yield
    except (psycopg.Error, adbc_driver_manager.Error) as error:
        # `from None`: a chained driver error would print DETAIL and CONTEXT in the traceback
        raise translate(error, place) from None


def _shown(error: BaseException, rule: Rule) -> str:
    state = _state(error)
    said = _primary(error) if rule.speakable or _is_speakable(error, state) else _UNSPOKEN
    return f"{said} ({state})" if state else said


def _rule(error: BaseException, state: str | None, said: str) -> Rule:
    for rule in RULES:
        if re.fullmatch(rule.states, state or "") and re.search(rule.text, said):
            return rule
    lost = state is None and isinstance(error, (psycopg.OperationalError, adbc_driver_manager.OperationalError))
    return UNREACHABLE if lost else OTHER


def _state(error: BaseException) -> str | None:
    return getattr(error, "sqlstate", None)


def _primary(error: BaseException) -> str:
    """Return the server's primary message; for errors that no server sent, the driver's first sentence."""
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        return error.diag.message_primary
    details = dict(getattr(error, "details", None) or ())
    if primary := details.get(b"PG_DIAG_MESSAGE_PRIMARY"):
        return bytes(primary).decode("utf-8", "replace")
    return _HEAD.sub("", _first_line(error))


def _is_speakable(error: BaseException, state: str | None) -> bool:
    return bool(_SPEAKABLE.fullmatch(state) if state else _CONNECTING.search(_first_line(error)))


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
