"""How hosts and paths are compared, the same in every dialect and in the proxies that enforce them.

A path is compared without query and fragment, after decoding unreserved `%XX`, reading a raw backslash
as a slash, removing dot segments and merging slashes, in this order. An encoded slash or backslash is
neither a separator nor a letter: servers disagree about it, so a path that has one is refused wherever
a policy looks at paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from eastgate.policy.attributes import PATH
from eastgate.policy.matchers import OneOf, Prefix, Suffix
from eastgate.policy.predicates import Is, Predicate, any_of

__all__ = ["any_path", "comparable_host", "comparable_path", "is_refused"]

_ENCODED_SEPARATOR = re.compile(r"%(?:2f|5c)", re.IGNORECASE)
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SLASHES = re.compile(r"/{2,}")


def is_refused(path: str) -> bool:
    """Whether a path has an encoded slash or backslash before its query and fragment."""
    return "%" in path and _ENCODED_SEPARATOR.search(path) is not None


def comparable_path(raw: str) -> str:
    """The form in which a path is compared with policies. An encoded separator stays, for `is_refused` to see."""
    path = re.split(r"[?#]", raw, maxsplit=1)[0]
    path = _ENCODED.sub(_decode_unreserved, path).replace("\\", "/")
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
    host = raw.lower()
    if host.startswith("["):  # an IPv6 address in brackets
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].removesuffix(".")


def any_path(paths: Iterable[str]) -> Predicate:
    """Requests to ANY of these paths, of which each is exact, or has one `*` at its end or its beginning."""
    written = list(paths)
    exact = frozenset(path for path in written if "*" not in path)
    parts: list[Predicate] = [Is(PATH, OneOf(exact))] if exact else []
    parts += [Is(PATH, Prefix(one[:-1]) if one.endswith("*") else Suffix(one[1:])) for one in written if "*" in one]
    return any_of(parts)
