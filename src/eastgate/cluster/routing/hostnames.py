"""Hostnames as Gateway API compares them.

`*.example.com` matches one or more labels before `.example.com`, but not `example.com` itself. Instead of comparing a
host with every hostname in manifests, this module lists the few hostnames that match the host.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from eastgate.ir import ALWAYS, Is, OneOf, Predicate, Suffix
from eastgate.ir.addresses import comparable_host
from eastgate.ir.attributes import Attribute

Host: TypeAlias = str | None  # a host of a request, None: it has none; as a hostname, None: any

_MAX_HOSTNAME_CHARS = 253
_NO_LABEL = "?"  # a label that no manifest has


def comparable(host: Host) -> Host:
    """Return a host or hostname in its compared form; the empty text is none."""
    if host is not None and is_open(host):
        return host
    return comparable_host(host) or None if host is not None else None


def is_open(hostname: Host) -> bool:
    """Return whether a hostname has a variable, so that it equals no known host."""
    return hostname is not None and "{" in hostname


def hostnames_of(host: Host) -> Iterator[Host]:
    """Yield every hostname that matches a host, the most specific first: itself, wildcards from long to short, any."""
    if host is not None:
        yield host
        for position in range(max(1, len(host) - _MAX_HOSTNAME_CHARS), len(host)):
            if host[position] == ".":
                yield f"*{host[position:]}"
    yield None


def intersect(hostname: Host, other: Host) -> bool:
    """Return whether two hostnames have a host in common."""
    if hostname is None or other is None or hostname == other:
        return True
    suffix, other_suffix = hostname.removeprefix("*"), other.removeprefix("*")
    if hostname.startswith("*.") and other.startswith("*."):
        return suffix.endswith(other_suffix) or other_suffix.endswith(suffix)
    return (hostname.startswith("*.") and other.endswith(suffix)) or (
        other.startswith("*.") and hostname.endswith(other_suffix)
    )


def specificity(hostname: Host) -> tuple[int, int]:
    """Return the rank of a hostname: of all hostnames for a host, the most specific has the largest rank."""
    if hostname is None:
        return 0, 0
    return (1 if hostname.startswith("*.") else 2), len(hostname)


def sample_host(hostname: Host) -> Host:
    """Return a host that matches a hostname, and no more specific hostname in manifests."""
    return _NO_LABEL + hostname[1:] if hostname is not None and hostname.startswith("*.") else hostname


def named_by(hostname: Host, attribute: Attribute) -> Predicate:
    """Match the hosts of a hostname, including those of more specific hostnames."""
    if hostname is None:
        return ALWAYS
    if hostname.startswith("*."):
        return Is(attribute, Suffix(hostname[1:]))
    return Is(attribute, OneOf(frozenset({hostname})))
