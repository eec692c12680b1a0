"""Converts checked documents to the model, with their rules in the IR."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from eastgate.basics.diagnostics import Reporter
from eastgate.cluster import (
    ExternalsMatching,
    Operator,
    PodNamed,
    PodsMatching,
    PodsOfAccount,
    PodsOwnedBy,
    RouteMatch,
    RouteRule,
    Selector,
    Target,
    moment,
)
from eastgate.cluster import Requirement as LabelRequirement
from eastgate.cluster.read_filters import FILTERS
from eastgate.cluster.read_gateways import PARENTS
from eastgate.cluster.read_routes import matches
from eastgate.cluster.resources import is_audit, selector_of
from eastgate.cluster.shapes import TEXTS, each, record
from eastgate.dialects.base import Read, reader
from eastgate.dialects.linkerd import authorizations, route_shapes, shapes
from eastgate.dialects.linkerd.model import (
    GROUP,
    AuthorizationPolicy,
    ClientRequirement,
    HttpRoute,
    InboundRoute,
    LinkerdResource,
    MeshTLSAuthentication,
    NetworkAuthentication,
    Protocol,
    Server,
    ServerAuthorization,
    TargetRef,
    canonical_kind,
)
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.dialects.linkerd.values import network_of
from eastgate.ir import ALWAYS, NEVER, Is, Origin, PolicyRef, Predicate, Present, Rule, all_of, any_of
from eastgate.ir.attributes import ADDRESS, MESH_NAME, Attribute
from eastgate.reading.manifests import Document
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Field, Record
from eastgate.reading.manifests.shapes.reading import reader as object_reader
from eastgate.settings import Settings


def ref_of(document: Document) -> PolicyRef:
    """Return the reference of the object in a document."""
    return PolicyRef(document.kind, document.home, document.name, GROUP)


def everywhere_in(namespace: str) -> tuple[Target, ...]:
    """Return targets that select every workload of a namespace.

    Policies on Servers and routes have these targets. `assemble` finds the workloads that they govern.
    """
    return PodsMatching(namespace, Selector.of()), ExternalsMatching(namespace, Selector.of())


def created(root: Node) -> str | None:
    """Return the creation time of an object; None if no API server has created it."""
    timestamp = root["metadata"].get("creationTimestamp")
    return moment(timestamp.value) if timestamp is not None else None


def _labels(root: Node) -> dict[str, str]:
    labels = root["metadata"].get("labels")
    return {key: value.text for key, value in labels.items()} if labels is not None else {}


def _selector(node: Node) -> Selector:
    """Read a selector. Linkerd treats a selector with an illegal expression as one that matches nothing."""
    selector = selector_of(node)
    if all(_is_legal(expression) for expression in node.get("matchExpressions") or ()):
        return selector
    return Selector.of({}, [LabelRequirement("nothing", Operator.IN, frozenset())])


def _is_legal(expression: Node) -> bool:
    return (expression["operator"].text in (Operator.IN, Operator.NOT_IN)) == ("values" in expression)


# Servers


def server(document: Document, root: Node, _settings: Settings) -> Server:
    spec, ref = root["spec"], ref_of(document)
    external = "externalWorkloadSelector" in spec
    selector = _selector(spec["externalWorkloadSelector" if external else "podSelector"])
    port, protocol, access = spec["port"].value, spec.get("proxyProtocol"), spec.get("accessPolicy")
    namespace = ref.namespace or ""
    assert isinstance(port, int | str)  # noqa: S101 - the schema has checked it
    return Server(
        ref=ref,
        span=document.span,
        targets=(ExternalsMatching(namespace, selector) if external else PodsMatching(namespace, selector),),
        audit=is_audit(root),
        port=port,
        protocol=Protocol(protocol.text) if protocol is not None else Protocol.UNKNOWN,
        access=InboundPolicy(access.text) if access is not None else InboundPolicy.DENY,
        access_span=access.span if access is not None else document.span,
        external=external,
        labels=_labels(root),
        created=created(root),
    )


def server_authorization(document: Document, root: Node, settings: Settings) -> ServerAuthorization:
    """Read a ServerAuthorization. Without networks, or with an empty list, it allows the networks of the cluster."""
    spec, ref = root["spec"], ref_of(document)
    chosen, client = spec["server"], spec["client"]
    name, networks = chosen.get("name"), client.get("networks")
    who = _client(client, ref.namespace or "", settings)
    anywhere = networks is None or not list(networks)
    where = (
        authorizations.in_networks(authorizations.cluster_networks(settings))
        if networks is None or anywhere
        else _networks(networks)
    )
    looked_at = ((ADDRESS, networks), (MESH_NAME, client.get("meshTLS")))
    parts = tuple((attribute, node.span) for attribute, node in looked_at if node is not None)
    origin = Origin(ref, 0, client.span, parts)
    return ServerAuthorization(
        ref=ref,
        span=document.span,
        targets=everywhere_in(ref.namespace or ""),
        audit=is_audit(root),
        server=name.text if name is not None else _selector(chosen["selector"]),
        rule=Rule(all_of([who, where]), origin),
        client=who if anywhere else None,
    )


def _client(client: Node, namespace: str, settings: Settings) -> Predicate:
    mesh = client.get("meshTLS")
    if mesh is None:
        unauthenticated = client.get("unauthenticated")
        return ALWAYS if unauthenticated is not None and unauthenticated.value is True else NEVER
    anybody = mesh.get("unauthenticatedTLS")
    if anybody is not None and anybody.value is True:
        return Is(MESH_NAME, Present())
    accounts = [_account(account, namespace, settings) for account in mesh.get("serviceAccounts") or ()]
    return authorizations.with_identities([*(identity.text for identity in mesh.get("identities") or ()), *accounts])


def _account(account: Node, own_namespace: str, settings: Settings) -> str:
    namespace = account.get("namespace")
    return settings.mesh_name(namespace.text if namespace is not None else own_namespace, account["name"].text)


# AuthorizationPolicy


def authorization_policy(document: Document, root: Node, settings: Settings) -> AuthorizationPolicy:
    spec, ref = root["spec"], ref_of(document)
    namespace = ref.namespace or ""
    refs = spec["requiredAuthenticationRefs"]
    requirements = tuple(_requirement(node, namespace, settings) for node in refs)
    group, kind = canonical_kind(spec["targetRef"])
    target = TargetRef(group, kind, spec["targetRef"]["name"].text)
    return AuthorizationPolicy(
        ref=ref,
        span=document.span,
        targets=_targets(target, namespace),
        references=tuple(requirement.when for requirement in requirements if isinstance(requirement.when, PolicyRef)),
        audit=is_audit(root),
        target=target,
        requirements=requirements,
        refs_span=refs.span,
    )


def _targets(target: TargetRef, namespace: str) -> tuple[Target, ...]:
    match target.kind:
        case "Pod":
            return (PodNamed(namespace, target.name),)
        case "ServiceAccount":
            return (PodsOfAccount(namespace, target.name),)
        case "Server" | "Namespace" | "HTTPRoute" | "GRPCRoute":
            return everywhere_in(namespace)
        case kind:
            return (PodsOwnedBy(namespace, kind, target.name),)


def _requirement(ref: Node, own_namespace: str, settings: Settings) -> ClientRequirement:
    _, kind = canonical_kind(ref)
    namespace = where.text if (where := ref.get("namespace")) is not None else own_namespace
    if kind == "ServiceAccount":
        name = settings.mesh_name(namespace, ref["name"].text)
        return ClientRequirement(ref.span, MESH_NAME, authorizations.with_identities([name]))
    attribute: Attribute = MESH_NAME if kind == "MeshTLSAuthentication" else ADDRESS
    return ClientRequirement(ref.span, attribute, PolicyRef(kind, namespace, ref["name"].text, GROUP))


# Authentications


def mesh_tls_authentication(document: Document, root: Node, settings: Settings) -> MeshTLSAuthentication:
    spec, ref = root["spec"], ref_of(document)
    refs = spec.get("identityRefs")
    entries = spec["identities"] if refs is None else refs
    if refs is None:
        identities = [entry.text for entry in entries]
    else:
        identities = [_identity(entry, ref.namespace or "", settings) for entry in refs]
    return MeshTLSAuthentication(
        ref=ref, span=document.span, who=authorizations.with_identities(identities), who_span=entries.span
    )


def _identity(ref: Node, own_namespace: str, settings: Settings) -> str:
    """Return the name of a service account, or the pattern for all accounts of a namespace."""
    if canonical_kind(ref) == ("", "Namespace"):
        return settings.mesh_name(ref["name"].text, "*")
    return _account(ref, own_namespace, settings)


def network_authentication(document: Document, root: Node, _settings: Settings) -> NetworkAuthentication:
    networks = root["spec"]["networks"]
    return NetworkAuthentication(
        ref=ref_of(document), span=document.span, where=_networks(networks), where_span=networks.span
    )


def _networks(networks: Node) -> Predicate:
    """Match ANY of the entries, each without its exceptions; everything if they cover all addresses."""
    entries = [
        (network, tuple(exception for node in entry.get("except") or () if (exception := network_of(node)) is not None))
        for entry in networks
        if (network := network_of(entry["cidr"])) is not None
    ]
    plain = tuple(network for network, exceptions in entries if not exceptions)
    if authorizations.in_networks(plain) == ALWAYS:
        return ALWAYS
    parts = [authorizations.in_networks(plain)] if plain else []
    return any_of(
        parts + [authorizations.in_network_except(network, excepted) for network, excepted in entries if excepted]
    )


# Reads a checked HTTPRoute into the model.


_MATCHES = each(matches(), make=RouteMatch, together=lambda some: some or (RouteMatch(),))
_RULES = each({"matches": _MATCHES, "filters": FILTERS}, make=RouteRule)
_SPEC = record({"parentRefs": Field(PARENTS, into="parents"), "hostnames": TEXTS, "rules": _RULES})
_read_spec = object_reader(_SPEC, checked=False)


def http_route(document: Document, root: Node, _settings: Settings) -> HttpRoute:
    """Read Linkerd's own HTTPRoute.

    Its parts are those of Gateway API's HTTPRoute, but all headers of one name count.
    """
    ref = ref_of(document)
    namespace = ref.namespace or ""
    spec: dict[str, Any] = {"parents": (), "rules": (RouteRule(),), **_read_spec(root["spec"].plain(), namespace)}
    return HttpRoute(
        ref=ref,
        span=document.span,
        targets=everywhere_in(namespace),
        route=InboundRoute(
            group=GROUP,
            kind="HTTPRoute",
            namespace=namespace,
            name=document.name,
            created=created(root),
            **spec,
        ),
    )


# Reads Linkerd's resources: checks each against its shape, and builds its model.


# Versions of a kind share one shape, or each have their own.
_Shape = Record[Settings] | Callable[[str], Record[Settings]]
_FORMS: dict[str, tuple[_Shape, Callable[[Document, Node, Settings], LinkerdResource]]] = {
    "Server": (shapes.server, server),
    "ServerAuthorization": (shapes.SERVER_AUTHORIZATION, server_authorization),
    "AuthorizationPolicy": (shapes.AUTHORIZATION_POLICY, authorization_policy),
    "MeshTLSAuthentication": (shapes.MESH_TLS_AUTHENTICATION, mesh_tls_authentication),
    "NetworkAuthentication": (shapes.NETWORK_AUTHENTICATION, network_authentication),
    "HTTPRoute": (route_shapes.HTTP_ROUTE, http_route),
}


def read(document: Document, root: Node, settings: Settings, reporter: Reporter) -> LinkerdResource | None:
    """Return the resource in a document, if the document has no errors."""
    return _reader(document.kind, document.version)(document, root, settings, reporter)


@cache
def shape_of(kind: str, version: str) -> Record[Settings]:
    """Return the shape of a kind in a version."""
    shape, _ = _FORMS[kind]
    return shape if isinstance(shape, Record) else shape(version)


@cache
def _reader(kind: str, version: str) -> Read[LinkerdResource]:
    _, mean = _FORMS[kind]
    return reader(shape_of(kind, version), mean)
