"""Hosts of a rule as our proxies compare them: without port, letter case and trailing dot."""

from __future__ import annotations

import re
from collections.abc import Iterable

from eastgate.basics.regexes import regex
from eastgate.dialects.istio.matching import match_pattern, match_texts
from eastgate.ir import Predicate, any_of
from eastgate.ir.attributes import AUTHORITY, HOST
from eastgate.ir.hosts import comparable_host

_PORT = regex(r"(?P<host>.*):(?P<port>[0-9]+)")


def match_canonical_hosts(texts: Iterable[str]) -> Predicate:
    """Match ANY of these hosts. One with a port asks for that port as the request names it."""
    return any_of(map(_host, texts))


def _host(text: str) -> Predicate:
    port = _PORT.fullmatch(text)
    if text.endswith("*") and ":" in text:  # any port, or any of some
        return match_pattern(f"{AUTHORITY} is {text}", AUTHORITY, rf"(?i){re.escape(text[:-1].lower())}.*")
    if port is None:
        return match_texts(HOST, [_canonical(text)])
    host = port["host"].lower()
    name = f".*{re.escape(host[1:])}" if host.startswith("*") else re.escape(host)
    return match_pattern(f"{AUTHORITY} is {text}", AUTHORITY, rf"(?i){name}\.?:{port['port']}")


def _canonical(text: str) -> str:
    """Return a host in its canonical form; one that begins or ends with a wildcard keeps it."""
    if text.startswith("*"):
        return f"*{comparable_host(text[1:])}"
    return f"{text[:-1].lower()}*" if text.endswith("*") else comparable_host(text)
