"""Converts checked documents to AuthPolicies of 2022."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster import moment
from eastgate.cluster.resources import is_audit
from eastgate.cluster.targets import GatewayNamed, RouteNamed
from eastgate.dialects.kuadrant.proposal.model import HttpRule, Policy
from eastgate.dialects.kuadrant.schemes import read_scheme
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings


def auth_policy(document: Document, root: Node, _settings: Settings) -> Policy:
    """Read an AuthPolicy."""
    spec, namespace = root["spec"], document.home
    target = spec["targetRef"]
    target_type = RouteNamed if target["kind"].text == "HTTPRoute" else GatewayNamed
    schemes = [*(spec.get("authSchemes") or ()), *([spec["authScheme"]] if "authScheme" in spec else ())]
    created = root["metadata"].get("creationTimestamp")
    return Policy(
        ref=PolicyRef(document.kind, namespace, document.name, document.group),
        span=document.span,
        name_span=root["metadata"]["name"].span,
        target=target_type(namespace, target["name"].text),
        target_span=target["name"].span,
        rules=tuple(_rule(rule) for rule in spec.get("rules") or ()),
        schemes=tuple(replace(read_scheme(scheme, namespace), span=scheme.span) for scheme in schemes),
        scheme_spans=tuple((scheme.span, tuple(host.span for host in scheme.get("hosts") or ())) for scheme in schemes),
        created=moment(created.value) if created is not None else None,
        audit=is_audit(root),
    )


def _rule(rule: Node) -> HttpRule:
    hosts = rule.get("hosts")
    return HttpRule(
        hosts=_texts(hosts),
        methods=_texts(rule.get("methods")),
        paths=_texts(rule.get("paths")),
        span=rule.span,
        host_spans=tuple(host.span for host in hosts or ()),
    )


def _texts(node: Node | None) -> tuple[str, ...] | None:
    return tuple(item.text for item in node) if node is not None else None
