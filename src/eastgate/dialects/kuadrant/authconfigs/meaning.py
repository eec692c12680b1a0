"""Converts checked documents to AuthConfigs."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster import moment
from eastgate.cluster.resources import is_audit
from eastgate.dialects.kuadrant.authconfigs.model import Policy
from eastgate.dialects.kuadrant.hosts import ANY
from eastgate.dialects.kuadrant.schemes import read_scheme
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings


def auth_config(document: Document, root: Node, _settings: Settings) -> Policy:
    """Read an AuthConfig."""
    spec, created = root["spec"], root["metadata"].get("creationTimestamp")
    return Policy(
        ref=PolicyRef(document.kind, document.home, document.name, document.group),
        span=document.span,
        name_span=root["metadata"]["name"].span,
        hosts=tuple(host.text for host in spec["hosts"]),
        scheme=replace(read_scheme(spec, document.home), hosts=(ANY,)),
        host_spans=tuple(host.span for host in spec["hosts"]),
        created=moment(created.value) if created is not None else None,
        audit=is_audit(root),
    )
