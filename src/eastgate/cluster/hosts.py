"""Hosts as Authorino's index finds them: by whole labels, with letter case, and with wildcards.

A host is found under its own name, else under the longest wildcard: `*.acme.com` means every name below acme.com,
however deep, and acme.com itself; `*` means all. A host with a port is looked up with it first, then without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

_MOST_LABELS = 128  # that a wildcard may stand for; no DNS name has more


def hosts_meaning(host: str) -> Iterator[str]:
    """Yield all hosts, with wildcards and without, that mean a host: the closest first. A wildcard is a host too."""
    yield host
    if host.startswith("."):
        yield host[1:]  # an empty first label counts as none
    rest = host.split(".", host.count(".") - _MOST_LABELS)[-1] if host.count(".") > _MOST_LABELS else host
    while rest:
        if f"*.{rest}" != host:
            yield f"*.{rest}"
        rest = rest.partition(".")[2]
    if host != "*":
        yield "*"


def find_host(host: str, is_known: Callable[[str], bool]) -> str | None:
    """Return the closest of the known hosts that means a host: as it is, else without its port."""
    for key in dict.fromkeys((host, host.partition(":")[0])):
        closest = next(filter(is_known, hosts_meaning(key)), None)
        if closest is not None:
            return closest
    return None
