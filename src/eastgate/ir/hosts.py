"""How hosts are compared, the same in every dialect and in the proxies that enforce them.

A host is compared without port, letter case and trailing dot. What is no host, or has a port that is none, is refused
before any policy is asked: what one server takes for a port or a name, another does not.
"""

from __future__ import annotations

import re
from typing import Final

from eastgate.basics.regexes import regex

_GROUP: Final = "[0-9a-f]{1,4}"
_BYTE: Final = "(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})"


def _ipv6() -> str:
    """Return a pattern for IPv6 addresses, with an IPv4 address at their end or without."""
    four = rf"{_BYTE}(?:\.{_BYTE}){{3}}"
    forms = [rf"(?:{_GROUP}:){{7}}{_GROUP}", rf"(?:{_GROUP}:){{6}}{four}", rf"(?:{_GROUP}:){{1,7}}:"]
    forms += [rf"(?:{_GROUP}:){{1,{before}}}(?::{_GROUP}){{1,{7 - before}}}" for before in range(1, 7)]
    forms += [rf"(?:{_GROUP}:){{1,{before}}}(?::{_GROUP}){{0,{5 - before}}}:{four}" for before in range(1, 6)]
    forms += [rf":(?::{_GROUP}){{1,7}}", rf":(?::{_GROUP}){{0,5}}:{four}", "::"]
    return "|".join(forms)


# RE2 and Python read these alike, and proxies are told the same; in any letter case.
PORT_PATTERN: Final = (
    "0*(?:[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"  # 0 to 65535
)
HOST_PATTERN: Final = rf"(?:[a-z0-9._-]*[a-z0-9_-]\.?|\[(?:{_ipv6()})\])(?::{PORT_PATTERN})?"

_HOST = regex(HOST_PATTERN, re.IGNORECASE | re.ASCII)
_PORT = regex(rf":{PORT_PATTERN}$", re.ASCII)


def is_host(raw: str) -> bool:
    """Return whether a text is a host as a request may name it: a name or an address, and perhaps a port."""
    return _HOST.fullmatch(raw) is not None


def comparable_host(raw: str) -> str:
    """Return a host without port and trailing dot, in lower case."""
    return _PORT.sub("", raw.lower()).removesuffix(".")


def comparable_sni(raw: str) -> str:
    """Return the name in a TLS handshake in lower case, and otherwise as it was sent.

    It has no port and no trailing dot (RFC 6066): what looks like one is part of another name, to proxies as well.
    """
    return raw.lower()
