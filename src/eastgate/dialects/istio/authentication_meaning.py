"""From checked documents to RequestAuthentications and PeerAuthentications."""

from __future__ import annotations

from eastgate.cluster.resources import is_audit
from eastgate.dialects.istio.authentications import (
    HeaderLocation,
    JwtRule,
    MtlsMode,
    MtlsPort,
    PeerAuthentication,
    RequestAuthentication,
)
from eastgate.dialects.istio.meaning import created_at, is_in_root
from eastgate.dialects.istio.targets import read_refs, read_selector, targets_of
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.settings import Settings


def peer_authentication(document: Document, root: Node, settings: Settings) -> PeerAuthentication:
    """Read a PeerAuthentication. A selector in the root namespace selects nothing, as Istio ignores it."""
    namespace, spec = document.home, root.get("spec")
    selector, in_root = read_selector(spec), is_in_root(namespace, settings)
    mtls = spec.get("mtls") if spec is not None else None
    ports = spec.get("portLevelMtls") if spec is not None else None
    ignored = in_root and bool(selector.match_labels)
    return PeerAuthentication(
        ref=PolicyRef(document.kind, namespace, document.name, document.group),
        span=document.span,
        targets=() if ignored else targets_of(namespace, selector, in_root=in_root, gateways=False),
        audit=is_audit(root),
        selector=selector,
        has_selector=spec is not None and "selector" in spec,
        in_root=in_root,
        created=created_at(root),
        mode=_mode(mtls),
        mode_span=mtls.span if mtls is not None else document.span,
        ports=tuple(MtlsPort(int(port), _mode(node), node.span) for port, node in ports.items()) if ports else (),
    )


def _mode(mtls: Node | None) -> MtlsMode:
    mode = mtls.get("mode") if mtls is not None else None
    return MtlsMode(mode.text) if mode is not None else MtlsMode.UNSET


def request_authentication(document: Document, root: Node, settings: Settings) -> RequestAuthentication:
    """Read a RequestAuthentication. One without rules accepts no token, and refuses none."""
    namespace, spec = document.home, root.get("spec")
    selector, refs, in_root = read_selector(spec), read_refs(spec), is_in_root(namespace, settings)
    rules = spec.get("jwtRules") if spec is not None else None
    return RequestAuthentication(
        ref=PolicyRef(document.kind, namespace, document.name, document.group),
        span=document.span,
        targets=targets_of(namespace, selector, refs, in_root=in_root),
        audit=is_audit(root),
        selector=selector,
        has_selector=spec is not None and "selector" in spec,
        refs=refs,
        in_root=in_root,
        created=created_at(root),
        rules=tuple(_rule(node) for node in rules or ()),
    )


def _rule(node: Node) -> JwtRule:
    return JwtRule(
        span=node.span,
        issuer=_text(node, "issuer"),
        audiences=frozenset(_texts(node, "audiences")),
        jwks=_text(node, "jwks"),
        jwks_uri=_text(node, "jwksUri") or _text(node, "jwks_uri"),
        headers=tuple(
            HeaderLocation(each["name"].text.lower(), _text(each, "prefix") or "")
            for each in node.get("fromHeaders") or ()
        ),
        params=_texts(node, "fromParams"),
        cookies=_texts(node, "fromCookies"),
        space_delimited=frozenset(_texts(node, "spaceDelimitedClaims")),
        forwards="forwardOriginalToken" in node and node["forwardOriginalToken"].value is True,
    )


def _text(node: Node, name: str) -> str | None:
    value = node.get(name)
    return value.text or None if value is not None else None


def _texts(node: Node, name: str) -> tuple[str, ...]:
    return tuple(each.text for each in node.get(name) or ())
