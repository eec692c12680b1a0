"""Authorino's AuthConfig: an auth scheme for requests to hosts, for Authorino without Kuadrant.

Proxies of other projects ask Authorino, which finds the AuthConfig by the host of the request (`linking`).
"""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import Everything, Target
from eastgate.cluster.targets import HostNamed
from eastgate.cluster.unread.locating import content_of
from eastgate.dialects.base import Dialect, HostKind, Kind, NameUse, reader
from eastgate.dialects.kuadrant.authconfigs.assemble import layers
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.dialects.kuadrant.authconfigs.provenance import AT_HOST
from eastgate.dialects.kuadrant.authconfigs.words import WORDS, conditions, summary
from eastgate.dialects.kuadrant.hosts import ANY, index_host_problem
from eastgate.dialects.kuadrant.nulls import without_nulls
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Record
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.dialects.linting import Linting

__all__ = ["DIALECT", "GROUP", "Policy"]

GROUP = "authorino.kuadrant.io"
_OLD, _NEW = "v1beta1", ("v1beta2", "v1beta3")


def _shape(version: str) -> Record[Any]:
    from eastgate.dialects.kuadrant.authconfigs import shapes  # a large model, and most folders need none

    return shapes.AUTH_CONFIG_V1BETA1 if version == _OLD else shapes.AUTH_CONFIG


def _shapes(version: str) -> tuple[Record[Any], ...]:
    return (_shape(version),)


def _read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> Policy | None:
    from eastgate.dialects.kuadrant.authconfigs.meaning import auth_config

    read = reader(_shape(document.version), auth_config)
    return read(document, without_nulls(root), settings, reporter)


def _locate(document: Document) -> tuple[Target, ...]:
    """Return the hosts of an AuthConfig with errors in other fields; all hosts if one of them cannot be read."""
    hosts = content_of(document).get("hosts")
    if not isinstance(hosts, list) or not hosts or not all(map(_is_host, hosts)):
        return (HostNamed(ANY),)
    return tuple(map(HostNamed, dict.fromkeys(hosts)))


def _is_host(host: object) -> bool:
    return isinstance(host, str) and index_host_problem(host) is None


def _widen(targets: tuple[Target, ...], document: Document, _settings: Settings) -> tuple[Target, ...]:
    """Return all hosts if the hosts of an AuthConfig are unknown, because an AuthConfig only targets hosts."""
    if not any(isinstance(target, Everything) for target in targets):
        return targets
    kept = tuple(target for target in targets if document.group != GROUP or target == Everything(None))
    return (*kept, HostNamed(ANY))


def _codes() -> tuple[ModuleType, ...]:
    from eastgate.dialects.kuadrant.schemes import codes

    return (codes,)


def _lint() -> Linting[Policy]:
    from eastgate.dialects.kuadrant.authconfigs.lint import LINTING

    return LINTING


DIALECT: Dialect[Policy] = Dialect(
    name="Authorino",
    model=Policy,
    kinds=tuple(
        Kind(GROUP, version, "AuthConfig", _read, partial(_shapes, version), NameUse.OTHER_GROUPS, locate=_locate)
        for version in (_OLD, *_NEW)
    ),
    layers=layers,
    words=WORDS,
    codes=_codes,
    closes=lambda _policy: False,
    lint=_lint,
    status=conditions,
    summary=summary,
    widen=_widen,
    hosts=HostKind(GROUP, "AuthConfig", "Authorino", AT_HOST),
    reads_secrets=True,
)
