"""Hostnames as Gateway API compares them.

`*.example.com` stands for one or more labels before `.example.com`, not for `example.com` itself. Instead of comparing
a host with every hostname that is written somewhere, one lists the few by which it can be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from eastgate.ir.hosts import comparable_host

__all__ = ["Host", "comparable", "hostnames_of", "sample_hosts", "specificity"]

Host: TypeAlias = str | None  # a host of a request, None: it has none; as a hostname, None: any

_LONGEST_HOSTNAME = 253
_NO_LABEL = "?"  # stands for a label that nobody has written


def comparable(host: Host) -> Host:
    """Return a host or hostname in the form in which it is compared; empty is none."""
    return comparable_host(host) or None if host is not None else None


def hostnames_of(host: Host) -> Iterator[Host]:
    """Yield every hostname that means a host, the most specific first: itself, wildcards from long to short, any."""
    if host is not None:
        yield host
        for position in range(max(1, len(host) - _LONGEST_HOSTNAME), len(host)):
            if host[position] == ".":
                yield f"*{host[position:]}"
    yield None


def specificity(hostname: Host) -> tuple[int, int]:
    """Return how specific a hostname is: where several mean a host, the larger comes first."""
    if hostname is None:
        return 0, 0
    return (1 if hostname.startswith("*.") else 2), len(hostname)


def sample_hosts(hostnames: Iterable[Host]) -> list[Host]:
    """Return sample hosts: of all hosts that these hostnames do not tell apart, one."""
    samples: dict[Host, None] = {None: None}
    for hostname in hostnames:
        if hostname is not None:
            samples[_NO_LABEL + hostname[1:] if hostname.startswith("*.") else hostname] = None
    return list(samples)
