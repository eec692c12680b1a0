"""Hosts in the order of Authorino's index: by whole labels, with letter case, and with wildcards.

A host is found under its own name, else under the longest wildcard. `*.acme.com` matches every name below acme.com,
however deep, and acme.com itself; `*` matches all. A host with a port is looked up with its port first, then without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_MAX_LABELS = 128  # labels that a wildcard can match; no DNS name has more


def hosts_meaning(host: str) -> Iterator[str]:
    """Yield all hosts, with wildcards and without, that match a host: the closest first. A wildcard is a host too."""
    yield host
    if host.startswith("."):
        yield host[1:]  # an empty first label does not count
    rest = host.split(".", host.count(".") - _MAX_LABELS)[-1] if host.count(".") > _MAX_LABELS else host
    while rest:
        if f"*.{rest}" != host:
            yield f"*.{rest}"
        rest = rest.partition(".")[2]
    if host != "*":
        yield "*"


def find_host(host: str, is_known: Callable[[str], bool]) -> str | None:
    """Return the closest of the known hosts that matches a host: with its port, else without."""
    for key in dict.fromkeys((host, host.partition(":")[0])):
        closest = next(filter(is_known, hosts_meaning(key)), None)
        if closest is not None:
            return closest
    return None
