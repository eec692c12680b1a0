"""Regular expressions for names, as an API server and editors take them.

They mean the same to Go's RE2, to Python and to JavaScript: no look-ahead, no Unicode classes. What one expression
cannot say about the length of a part, a second one says.
"""

from __future__ import annotations

from eastgate.ir.spiffe import SPIFFE_ID

__all__ = [
    "DNS_LABEL",
    "DNS_SUBDOMAIN",
    "LABEL_KEY",
    "LABEL_KEY_LENGTHS",
    "LABEL_VALUE",
    "NOT_COMPARABLE",
    "SPIFFE_ID",
    "any_case",
    "path_with_wildcard",
    "whole",
]

DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
DNS_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_VALUE = f"({_WORD})?"
LABEL_KEY = f"({DNS_SUBDOMAIN}/)?{_WORD}"
LABEL_KEY_LENGTHS = "([^/]{1,253}/)?[^/]*"

# No request has it in its path: empty and dot segments, encoded slashes, what need not be encoded.
NOT_COMPARABLE = r"//|/\.\.?(/|$|;|%3[bB])|%(2[dDeEfF]|3[0-9]|4[1-9a-fA-F]|5[0-9aAcCfF]|6[1-9a-fA-F]|7[0-9aAeE])"
_NOT_IN_PATHS = r"*?#\\\x00-\x1f\x7f-\x9f"


def path_with_wildcard(*, spaces: bool = True) -> str:
    """Return the pattern of a path, perhaps with one `*`: at its end, or at its beginning."""
    others = f"[^{_NOT_IN_PATHS}]*" if spaces else rf"[^{_NOT_IN_PATHS}\x20\xa0]*"
    return rf"^(/{others}\*?|\*{others})$"


def whole(pattern: str) -> str:
    """Return the expression that matches only whole texts."""
    return f"^({pattern})$" if "|" in pattern else f"^{pattern}$"


def any_case(*words: str) -> str:
    """Return a pattern of some words, in any mixture of small and capital letters."""
    return "|".join("".join(f"[{letter.upper()}{letter.lower()}]" for letter in word) for word in words)
