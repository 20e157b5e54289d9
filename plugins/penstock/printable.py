r"""What a text may do to who reads it: names and comments of a source are anybody's, and a terminal obeys what it is sent.

Whatever shows a text passes it through `printable`: errors, lines of progress, results of verbs, alerts, the page. Names
stay as they are everywhere else. Of a character that does something instead of being seen (ESC and other controls, ends of lines
and paragraphs, what turns the direction of writing) its number is shown, as in `\x1b`.
"""

import re

_ACTS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """Return a text in one line that does nothing but being seen; one that does nothing else already stays as it is."""
    return _ACTS.sub(_number, text)


def _number(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"
