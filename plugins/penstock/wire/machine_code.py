"""Where the decoder's machine code is kept, apart from the loops themselves: a change of their file compiles them all again.

It is one place, whoever starts the process, so that it is compiled once.
numba asks for its folder when a function is decorated. Without the variable NUMBA_CACHE_DIR it would look next to the source
and in the user's home, where what the set-up has compiled is not.
"""

import os
from pathlib import Path

from numba.core import config


def keep() -> None:
    """Let numba keep machine code in the project's `.local/numba`, unless NUMBA_CACHE_DIR says where, or it is not ours."""
    folder = place()
    if not config.CACHE_DIR and folder is not None:
        config.CACHE_DIR = str(folder)


def place() -> Path | None:
    """Return the folder that the set-up compiles into; None where this process cannot write it: numba looks further then."""
    home = Path(os.environ.get("PENSTOCK_HOME") or Path(__file__).resolve().parents[3])
    folder = Path(os.environ.get("PENSTOCK_LOCAL") or home / ".local") / "numba"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
