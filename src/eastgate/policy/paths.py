"""How hosts and paths are compared, the same in every dialect and in the proxies that enforce them.

A path is compared without query and fragment, after decoding unreserved `%XX`, encoding what no path may have as it is,
reading a raw backslash as a slash, removing dot segments and merging slashes, in this order. An encoded slash or
backslash is neither a separator nor a letter: servers disagree about it, so a path that has one is refused wherever a
policy looks at paths. So is a dot segment with parameters (`..;x`), which some servers cut off before they go up,
unless it is written plainly: then proxies go up by it, and it counts as a dot segment here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from eastgate.policy.attributes import PATH
from eastgate.policy.matchers import OneOf, Prefix, Suffix
from eastgate.policy.predicates import Is, Predicate, any_of

__all__ = ["REFUSED", "any_path", "comparable_host", "comparable_path", "is_refused"]

REFUSED: Final = r"%(?:2f|5c)|/\.{1,2};"  # in any letter case; proxies are told the same
_REFUSED = re.compile(REFUSED, re.IGNORECASE)
_DOTS_WITH_PARAMETERS = re.compile(r"(?<=/)(\.{1,2});[^/\\]*(?=/|$)")
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_FORBIDDEN = {ord(character): f"%{ord(character):02X}" for character in '"<>^`{|}'}
_PORT = re.compile(r":[0-9]+$")
_SLASHES = re.compile(r"/{2,}")


def is_refused(path: str) -> bool:
    """Whether a path has something, before its query and fragment, that servers disagree about."""
    return ("%" in path or ";" in path) and _REFUSED.search(path) is not None


def comparable_path(raw: str) -> str:
    """The form in which a path is compared with policies. An encoded separator stays, for `is_refused` to see."""
    path = _DOTS_WITH_PARAMETERS.sub(r"\1", re.split(r"[?#]", raw, maxsplit=1)[0])
    path = _ENCODED.sub(_decode_unreserved, path).replace("\\", "/").translate(_FORBIDDEN)
    return _SLASHES.sub("/", _without_dot_segments(path))


def _decode_unreserved(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0]


def _without_dot_segments(path: str) -> str:
    """RFC 3986, 5.2.4, for a path that starts with a slash; anything else is left alone."""
    if not path.startswith("/"):
        return path
    segments = path.split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def comparable_host(raw: str) -> str:
    """A host without port, letter case and trailing dot."""
    return _PORT.sub("", raw.lower()).removesuffix(".")


def any_path(paths: Iterable[str]) -> Predicate:
    """Requests to ANY of these paths, of which each is exact, or has one `*` at its end or its beginning."""
    written = list(paths)
    exact = frozenset(path for path in written if "*" not in path)
    parts: list[Predicate] = [Is(PATH, OneOf(exact))] if exact else []
    parts += [Is(PATH, Prefix(one[:-1]) if one.endswith("*") else Suffix(one[1:])) for one in written if "*" in one]
    return any_of(parts)
