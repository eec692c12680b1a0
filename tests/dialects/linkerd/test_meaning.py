"""Each resource becomes the right model."""

from __future__ import annotations

import pytest

from eastgate.cluster import (
    GATEWAY_GROUP,
    ExternalsMatching,
    ParentRef,
    PathMatch,
    PathType,
    PodNamed,
    PodsMatching,
    PodsOfAccount,
    PodsOwnedBy,
    Redirect,
    RouteMatch,
    RouteRule,
    Selector,
    Target,
    ValueMatch,
)
from eastgate.dialects.linkerd.model import (
    GROUP,
    AuthorizationPolicy,
    HttpRoute,
    MeshTLSAuthentication,
    NetworkAuthentication,
    Protocol,
    Server,
    ServerAuthorization,
    TargetRef,
)
from eastgate.dialects.linkerd.settings import InboundPolicy
from eastgate.engine.reference import holds
from eastgate.ir import ALWAYS, NEVER, Known, PolicyRef
from eastgate.ir.attributes import ADDRESS, MESH_NAME, Attribute
from eastgate.settings import Settings
from tests.dialects.linkerd.reading import SERVER, WEB, call, mesh_name, resource

Change = dict[Attribute, Known]
EVERYWHERE: tuple[Target, ...] = (PodsMatching("shop", Selector.of()), ExternalsMatching("shop", Selector.of()))

# Server


def test_the_least_of_a_server_finds_out_the_protocol_and_lets_nobody_in() -> None:
    read = resource(Server, "{podSelector: {}, port: 80}")
    assert read.targets == (PodsMatching("shop", Selector.of()),)
    assert (read.port, read.protocol, read.access, read.external) == (80, Protocol.UNKNOWN, InboundPolicy.DENY, False)
    assert (read.labels, read.created, read.references) == ({}, None, ())


def test_a_server_is_read_in_full() -> None:
    metadata = "{name: p, namespace: shop, labels: {a: b}, creationTimestamp: '2026-01-01T00:00:00Z'}"
    spec = "{externalWorkloadSelector: {matchLabels: {app: web}}, port: http, proxyProtocol: gRPC, accessPolicy: audit}"
    read = resource(Server, spec, metadata)
    assert read.targets == (ExternalsMatching("shop", Selector.of({"app": "web"})),)
    assert (read.port, read.protocol, read.access, read.external) == ("http", Protocol.GRPC, InboundPolicy.AUDIT, True)
    assert (read.labels, read.created) == ({"a": "b"}, "2026-01-01T00:00:00.000000+00:00")


@pytest.mark.parametrize("protocol", Protocol)
def test_every_protocol_can_be_written(protocol: Protocol) -> None:
    assert resource(Server, f"{{podSelector: {{}}, port: 80, proxyProtocol: {protocol}}}").protocol is protocol


@pytest.mark.parametrize("policy", InboundPolicy)
def test_every_access_policy_can_be_written(policy: InboundPolicy) -> None:
    assert resource(Server, f"{{podSelector: {{}}, port: 80, accessPolicy: {policy}}}").access is policy


@pytest.mark.parametrize(
    ("expression", "labels", "expected"),
    [
        ("{key: app, operator: In, values: [web]}", {"app": "web"}, True),
        ("{key: app, operator: In, values: []}", {"app": "web"}, False),
        ("{key: app, operator: In}", {"app": "web"}, False),
        ("{key: app, operator: NotIn, values: [web]}", {}, True),
        ("{key: app, operator: NotIn, values: []}", {"app": "web"}, True),
        ("{key: app, operator: NotIn}", {}, False),
        ("{key: app, operator: Exists}", {"app": "web"}, True),
        ("{key: app, operator: Exists, values: []}", {"app": "web"}, False),
        ("{key: app, operator: DoesNotExist}", {}, True),
        ("{key: app, operator: DoesNotExist, values: [web]}", {}, False),
    ],
)
def test_an_illegal_expression_matches_nothing(expression: str, labels: dict[str, str], expected: bool) -> None:
    (target,) = resource(Server, f"{{podSelector: {{matchExpressions: [{expression}]}}, port: 80}}").targets
    assert isinstance(target, PodsMatching)
    assert target.selector.matches(labels) is expected
    authorization = f"{{server: {{selector: {{matchExpressions: [{expression}]}}}}, client: {{unauthenticated: true}}}}"
    chosen = resource(ServerAuthorization, authorization).server
    assert isinstance(chosen, Selector)
    assert chosen.matches(labels) is expected


# ServerAuthorization

NOBODY: Change = {MESH_NAME: None}
FAR: Change = {ADDRESS: "8.8.8.8"}
SPIFFE: Change = {MESH_NAME: "spiffe://td/x"}
OTHER: Change = {MESH_NAME: mesh_name("web", "pay")}

# The written client, calls of `web` in the cluster that it allows, and calls that it does not allow
CLIENTS: list[tuple[str, list[Change], list[Change]]] = [
    ("{unauthenticated: true}", [{}, NOBODY], [FAR]),
    ("{unauthenticated: true, networks: []}", [{}, NOBODY], [FAR]),
    ("{unauthenticated: true, networks: [{cidr: 8.0.0.0/8}]}", [FAR, {**FAR, **NOBODY}], [{}]),
    ("{unauthenticated: true, networks: [{cidr: 0.0.0.0/0}, {cidr: '::/0'}]}", [{}, FAR, NOBODY], []),
    ("{meshTLS: {unauthenticatedTLS: true}}", [{}, SPIFFE], [NOBODY, FAR]),
    ("{meshTLS: {identities: ['*']}}", [{}, OTHER], [NOBODY, SPIFFE, FAR]),
    ("{meshTLS: {serviceAccounts: [{name: web}]}}", [{}], [OTHER, NOBODY, FAR]),
    ("{meshTLS: {serviceAccounts: [{name: web, namespace: pay}]}}", [OTHER], [{}, NOBODY]),
    ("{meshTLS: {serviceAccounts: [{name: web}], identities: ['*.pay.serviceaccount.identity.linkerd.cluster.local']}}",
     [{}, OTHER], [NOBODY]),
    ("{meshTLS: {identities: ['*']}, networks: [{cidr: 8.0.0.0/8}]}", [FAR], [{}, {**FAR, **NOBODY}]),
    # accepted, and authorizes no client
    ("{}", [], [{}, NOBODY]),
    ("{unauthenticated: false}", [], [{}, NOBODY]),
    ("{meshTLS: {}}", [], [{}, NOBODY]),
    ("{meshTLS: {unauthenticatedTLS: false, identities: []}}", [], [{}, NOBODY]),
]  # fmt: skip


@pytest.mark.parametrize(("client", "allowed", "others"), CLIENTS)
def test_a_server_authorization_is_clients_and_networks(
    client: str, allowed: list[Change], others: list[Change]
) -> None:
    rule = resource(ServerAuthorization, f"{{server: {{name: web}}, client: {client}}}").rule
    assert [change for change in (*allowed, *others) if holds(rule.when, call(change))] == allowed


def test_a_server_authorization_names_a_server_or_selects_some() -> None:
    client = "client: {unauthenticated: true}"
    assert resource(ServerAuthorization, f"{{server: {{name: web}}, {client}}}").server == "web"
    labels = resource(ServerAuthorization, f"{{server: {{selector: {{matchLabels: {{a: b}}}}}}, {client}}}")
    assert labels.server == Selector.of({"a": "b"})
    assert labels.targets == EVERYWHERE


# AuthorizationPolicy

TARGETS: list[tuple[str, TargetRef, tuple[Target, ...]]] = [
    ("{group: policy.linkerd.io, kind: Server, name: a}", TargetRef(GROUP, "Server", "a"), EVERYWHERE),
    ("{group: POLICY.linkerd.io, kind: server, name: a}", TargetRef(GROUP, "Server", "a"), EVERYWHERE),
    ("{kind: Namespace, name: shop}", TargetRef("", "Namespace", "shop"), EVERYWHERE),
    ("{group: core, kind: namespace, name: shop}", TargetRef("", "Namespace", "shop"), EVERYWHERE),
    ("{group: policy.linkerd.io, kind: HttpRoute, name: a}", TargetRef(GROUP, "HTTPRoute", "a"), EVERYWHERE),
    (f"{{group: {GATEWAY_GROUP}, kind: HTTPRoute, name: a}}", TargetRef(GATEWAY_GROUP, "HTTPRoute", "a"), EVERYWHERE),
    (f"{{group: {GATEWAY_GROUP}, kind: GRPCRoute, name: a}}", TargetRef(GATEWAY_GROUP, "GRPCRoute", "a"), EVERYWHERE),
    ("{kind: ServiceAccount, name: a}", TargetRef("", "ServiceAccount", "a"), (PodsOfAccount("shop", "a"),)),
    ("{group: '', kind: pod, name: a}", TargetRef("", "Pod", "a"), (PodNamed("shop", "a"),)),
    *(
        (f"{{group: {group}, kind: {kind}, name: a}}", TargetRef(group, kind, "a"), (PodsOwnedBy("shop", kind, "a"),))
        for group, kind in [
            ("apps", "Deployment"),
            ("apps", "StatefulSet"),
            ("apps", "DaemonSet"),
            ("apps", "ReplicaSet"),
            ("batch", "Job"),
        ]
    ),
]


@pytest.mark.parametrize(("written", "target", "targets"), TARGETS)
def test_a_policy_targets_servers_and_routes_of_its_namespace_or_workloads(
    written: str, target: TargetRef, targets: tuple[Target, ...]
) -> None:
    read = resource(AuthorizationPolicy, f"{{targetRef: {written}, requiredAuthenticationRefs: []}}")
    assert (read.target, read.targets) == (target, targets)


def test_a_policy_refers_to_authentications_of_its_own_and_of_other_namespaces() -> None:
    refs = (
        "[{group: policy.linkerd.io, kind: MeshTLSAuthentication, name: a},"
        " {group: Policy.Linkerd.IO, kind: networkauthentication, name: b, namespace: ops},"
        " {kind: ServiceAccount, name: web, namespace: pay}]"
    )
    read = resource(AuthorizationPolicy, f"{SERVER}requiredAuthenticationRefs: {refs}")
    mesh = PolicyRef("MeshTLSAuthentication", "shop", "a", GROUP)
    network = PolicyRef("NetworkAuthentication", "ops", "b", GROUP)
    assert read.references == (mesh, network)
    assert [one.attribute for one in read.requirements] == [MESH_NAME, ADDRESS, MESH_NAME]
    account = read.requirements[2].when
    assert not isinstance(account, PolicyRef)
    assert holds(account, call(OTHER))
    assert not holds(account, call())


# Authentications

IDENTITIES: list[tuple[str, list[Change], list[Change]]] = [
    (f"identities: [{WEB}]", [{}], [OTHER, NOBODY]),
    ("identities: ['*']", [{}, OTHER], [NOBODY, SPIFFE]),
    ("identities: [spiffe://td/x]", [SPIFFE], [{}, NOBODY]),
    ("identityRefs: [{kind: ServiceAccount, name: web}]", [{}], [OTHER, NOBODY]),
    ("identityRefs: [{kind: serviceaccount, name: web, namespace: pay}]", [OTHER], [{}]),
    ("identityRefs: [{kind: Namespace, name: pay}]", [OTHER, {MESH_NAME: mesh_name("x", "pay")}], [{}, NOBODY]),
    ("identityRefs: [{kind: Namespace, name: pay}, {kind: ServiceAccount, name: web}]", [{}, OTHER], [NOBODY]),
]


@pytest.mark.parametrize(("spec", "allowed", "others"), IDENTITIES)
def test_a_mesh_authentication_is_any_of_its_names(spec: str, allowed: list[Change], others: list[Change]) -> None:
    who = resource(MeshTLSAuthentication, spec).who
    assert [change for change in (*allowed, *others) if holds(who, call(change))] == allowed


def test_names_are_those_of_the_control_plane_and_its_domain() -> None:
    settings = Settings(linkerd_namespace="mesh", cluster_domain="east.example")
    who = resource(MeshTLSAuthentication, "identityRefs: [{kind: ServiceAccount, name: web}]", settings=settings).who
    assert holds(who, call({MESH_NAME: "web.shop.serviceaccount.identity.mesh.east.example"}))
    assert not holds(who, call())


@pytest.mark.parametrize(
    ("networks", "allowed", "others"),
    [
        ("[{cidr: 10.0.0.0/8}]", ["10.1.2.3"], ["11.0.0.1", "::1"]),
        ("[{cidr: 10.0.0.0/8}, {cidr: fd00::/8}]", ["10.1.2.3", "fd00::1"], ["::1"]),
        ("[{cidr: 10.0.0.0/8, except: [10.1.0.0/16, 10.2.0.1]}]", ["10.3.0.1"], ["10.1.2.3", "10.2.0.1"]),
        # an exception is of its own entry only
        ("[{cidr: 10.0.0.0/8, except: [10.1.0.0/16]}, {cidr: 10.1.2.0/24}]", ["10.1.2.3", "10.3.0.1"], ["10.1.3.1"]),
        ("[{cidr: 10.1.2.3/8}]", ["10.9.9.9"], ["11.0.0.1"]),
        ("[{cidr: 0.0.0.0/0, except: [10.0.0.0/8]}, {cidr: '::/0'}]", ["8.8.8.8", "::1"], ["10.1.2.3"]),
    ],
)
def test_a_network_authentication_is_any_of_its_networks(networks: str, allowed: list[str], others: list[str]) -> None:
    where = resource(NetworkAuthentication, f"networks: {networks}").where
    assert [ip for ip in (*allowed, *others) if holds(where, call({ADDRESS: ip}))] == allowed


def test_every_network_asks_nothing_even_of_a_client_without_an_address() -> None:
    everywhere = "[{cidr: 0.0.0.0/0}, {cidr: '::/0'}, {cidr: 10.0.0.0/8, except: [10.0.0.1]}]"
    assert resource(NetworkAuthentication, f"networks: {everywhere}").where == ALWAYS
    assert resource(NetworkAuthentication, "networks: [{cidr: 0.0.0.0/0}]").where not in (ALWAYS, NEVER)


# HTTPRoute


def test_an_empty_route_has_one_rule_for_everything_and_one_with_no_rules_has_none() -> None:
    route = resource(HttpRoute, "{}").route
    assert (route.group, route.kind, route.namespace, route.name) == (GROUP, "HTTPRoute", "shop", "p")
    assert (route.parents, route.hostnames, route.rules, route.created) == ((), (), (RouteRule(),), None)
    assert resource(HttpRoute, "{rules: []}").route.rules == ()
    assert str(route) == "HTTPRoute shop/p"


@pytest.mark.parametrize(
    ("written", "parent"),
    [
        ("{name: web}", ParentRef("shop", "web")),
        ("{group: policy.linkerd.io, kind: Server, name: web}", ParentRef("shop", "web", GROUP, "Server")),
        (
            "{group: policy.linkerd.io, kind: Server, name: web, namespace: pay, port: 80, sectionName: a}",
            ParentRef("pay", "web", GROUP, "Server", "a", 80),
        ),
    ],
)
def test_a_parent_has_the_defaults_of_gateway_api(written: str, parent: ParentRef) -> None:
    assert resource(HttpRoute, f"{{parentRefs: [{written}]}}").route.parents == (parent,)


MATCHES = [
    ("{}", RouteMatch()),
    ("{path: {}}", RouteMatch()),
    ("{path: {value: /a}}", RouteMatch(PathMatch(PathType.PREFIX, "/a"))),
    ("{path: {type: Exact}}", RouteMatch(PathMatch(PathType.EXACT, "/"))),
    ("{path: {type: Exact, value: /%41}}", RouteMatch(PathMatch(PathType.EXACT, "/%41"))),
    ("{path: {type: RegularExpression, value: '/%41.*'}}", RouteMatch(PathMatch(PathType.REGEX, "/%41.*"))),
    ("{method: POST}", RouteMatch(method="POST")),
    ("{headers: [{name: X-Team, value: a}]}", RouteMatch(headers=(ValueMatch("x-team", "a"),))),
    (
        "{headers: [{name: a, type: RegularExpression, value: b}], queryParams: [{name: Q, type: Exact, value: c}]}",
        RouteMatch(headers=(ValueMatch("a", "b", regex=True),), query=(ValueMatch("Q", "c"),)),
    ),
]


@pytest.mark.parametrize(("written", "match"), MATCHES)
def test_a_match_is_read_as_it_is_compared(written: str, match: RouteMatch) -> None:
    assert resource(HttpRoute, f"{{rules: [{{matches: [{written}]}}]}}").route.rules == (RouteRule((match,)),)


def test_a_rule_without_matches_matches_everything_and_filters_are_kept() -> None:
    redirect = "{type: RequestRedirect, requestRedirect: {}}"
    route = resource(HttpRoute, f"{{hostnames: [a.b], rules: [{{filters: [{redirect}]}}, {{matches: []}}]}}").route
    assert route.rules == (RouteRule(filters=(Redirect(),)), RouteRule())
    assert route.hostnames == ("a.b",)
