"""The hosts that an AuthConfig with errors may be for, which it closes."""

from __future__ import annotations

from eastgate.cluster import Everything, Target
from eastgate.cluster.targets import HostNamed
from eastgate.cluster.unread.locating import content_of
from eastgate.dialects.kuadrant.hosts import ANY, index_host_problem
from eastgate.reading.manifests import Document
from eastgate.settings import Settings

GROUP = "authorino.kuadrant.io"


def locate(document: Document) -> tuple[Target, ...]:
    """Return the hosts of an AuthConfig with errors elsewhere; all hosts where one of them cannot be read."""
    hosts = content_of(document).get("hosts")
    if not isinstance(hosts, list) or not hosts or not all(map(_is_host, hosts)):
        return (HostNamed(ANY),)
    return tuple(map(HostNamed, dict.fromkeys(hosts)))


def _is_host(host: object) -> bool:
    return isinstance(host, str) and index_host_problem(host) is None


def widen(targets: tuple[Target, ...], document: Document, _settings: Settings) -> tuple[Target, ...]:
    """Return all hosts where nobody can tell the hosts of an AuthConfig: it is for hosts, and for nothing else."""
    if not any(isinstance(target, Everything) for target in targets):
        return targets
    kept = tuple(target for target in targets if document.group != GROUP or target == Everything(None))
    return (*kept, HostNamed(ANY))
