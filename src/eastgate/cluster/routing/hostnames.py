"""Hostnames as Gateway API compares them.

`*.example.com` stands for one or more labels before `.example.com`, not for `example.com` itself. Instead of comparing
a host with every hostname that is written somewhere, one lists the few by which it can be written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from eastgate.ir import ALWAYS, Is, OneOf, Predicate, Suffix
from eastgate.ir.addresses import comparable_host
from eastgate.ir.attributes import Attribute

Host: TypeAlias = str | None  # a host of a request, None: it has none; as a hostname, None: any

_LONGEST_HOSTNAME = 253
_NO_LABEL = "?"  # stands for a label that nobody has written


def comparable(host: Host) -> Host:
    """Return a host or hostname in the form in which it is compared; empty is none."""
    if host is not None and is_open(host):
        return host
    return comparable_host(host) or None if host is not None else None


def is_open(hostname: Host) -> bool:
    """Return whether a hostname has a variable, so that it equals no host that is known."""
    return hostname is not None and "{" in hostname


def hostnames_of(host: Host) -> Iterator[Host]:
    """Yield every hostname that means a host, the most specific first: itself, wildcards from long to short, any."""
    if host is not None:
        yield host
        for position in range(max(1, len(host) - _LONGEST_HOSTNAME), len(host)):
            if host[position] == ".":
                yield f"*{host[position:]}"
    yield None


def intersect(hostname: Host, other: Host) -> bool:
    """Tell whether some host is meant by both of two hostnames."""
    if hostname is None or other is None or hostname == other:
        return True
    suffix, other_suffix = hostname.removeprefix("*"), other.removeprefix("*")
    if hostname.startswith("*.") and other.startswith("*."):
        return suffix.endswith(other_suffix) or other_suffix.endswith(suffix)
    return (hostname.startswith("*.") and other.endswith(suffix)) or (
        other.startswith("*.") and hostname.endswith(other_suffix)
    )


def specificity(hostname: Host) -> tuple[int, int]:
    """Return how specific a hostname is: where several mean a host, the larger comes first."""
    if hostname is None:
        return 0, 0
    return (1 if hostname.startswith("*.") else 2), len(hostname)


def sample_host(hostname: Host) -> Host:
    """Return a host that a hostname means, and no other hostname that is more specific."""
    return _NO_LABEL + hostname[1:] if hostname is not None and hostname.startswith("*.") else hostname


def named_by(hostname: Host, attribute: Attribute) -> Predicate:
    """Match the hosts of a hostname, also those that a more specific hostname matches."""
    if hostname is None:
        return ALWAYS
    if hostname.startswith("*."):
        return Is(attribute, Suffix(hostname[1:]))
    return Is(attribute, OneOf(frozenset({hostname})))
