"""Loopback ports: is one taken, and which one to take instead.

Free ports are sought below the kernel's range for outgoing connections, which the kernel gives to no other program.
"""

import random
import socket
from collections.abc import Collection

LOOPBACK = "127.0.0.1"
LOWEST, HIGHEST = 20_000, 32_000
TRIES = 200

_dice = random.SystemRandom()


def is_free(port: int) -> bool:
    """Return whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def choose(preferred: int | None = None, avoid: Collection[int] = ()) -> int:
    """Return `preferred` when it is free, else some free port outside `avoid`."""
    if preferred is not None and preferred not in avoid and is_free(preferred):
        return preferred
    for _ in range(TRIES):
        port = _dice.randrange(LOWEST, HIGHEST)
        if port not in avoid and is_free(port):
            return port
    raise OSError(f"no free loopback port between {LOWEST} and {HIGHEST} in {TRIES} tries")
