"""Authorizations of clients on a Server, a route or a workload, and the effect of references."""

from __future__ import annotations

import pytest

from eastgate.dialects.linkerd.authorizations import Authorizations
from eastgate.dialects.linkerd.model import (
    AuthorizationPolicy,
    HttpRoute,
    LinkerdResource,
    MeshTLSAuthentication,
    NetworkAuthentication,
    Server,
    ServerAuthorization,
)
from eastgate.engine.reference import holds
from eastgate.ir import ALWAYS, NEVER, Known, Rule
from eastgate.ir.attributes import ADDRESS, MESH_NAME, Attribute
from tests.dialects.linkerd.cluster import MESH_REF, NETWORK_REF, ON_ACCOUNT, ON_NAMESPACE, ON_ROUTE, ON_SERVER
from tests.dialects.linkerd.reading import call, mesh_name, resource


def named(name: str, more: str = "") -> str:
    return f"{{name: {name}, namespace: shop{more}}}"


AUDITED = ", annotations: {eastgate.dev/mode: audit}"
WEB = resource(Server, "{podSelector: {}, port: 80}", named("web", ", labels: {tier: front}"))
API = resource(HttpRoute, "{}", named("api")).route


def policy(name: str, target: str, refs: str = "", more: str = "") -> AuthorizationPolicy:
    spec = f"{{targetRef: {{{target}}}, requiredAuthenticationRefs: [{refs}]}}"
    return resource(AuthorizationPolicy, spec, named(name, more))


def authorization(name: str, server: str, more: str = "") -> ServerAuthorization:
    spec = f"{{server: {{{server}}}, client: {{unauthenticated: true}}}}"
    return resource(ServerAuthorization, spec, named(name, more))


def names(rules: list[Rule]) -> list[str]:
    return [rule.origin.policy.name for rule in rules if rule.origin.policy is not None]


RESOURCES: list[LinkerdResource] = [
    policy("p-route", ON_ROUTE),
    policy("p-other-route", ON_ROUTE.replace("policy.linkerd.io", "gateway.networking.k8s.io")),
    policy("p-other-server", ON_SERVER.replace("web", "db")),
    policy("p-server", ON_SERVER),
    policy("p-namespace", ON_NAMESPACE),
    policy("p-account", ON_ACCOUNT),
    policy("p-deployment", "group: apps, kind: Deployment, name: web"),
    policy("p-audited", ON_SERVER, more=AUDITED),
    policy("p-audited-route", ON_ROUTE, more=AUDITED),
    policy("p-audited-account", ON_ACCOUNT, more=AUDITED),
    authorization("s-name", "name: web"),
    authorization("s-labels", "selector: {matchLabels: {tier: front}}"),
    authorization("s-all", "selector: {}"),
    authorization("s-other", "name: db"),
    authorization("s-other-labels", "selector: {matchLabels: {tier: back}}"),
    authorization("s-audited", "name: web", more=AUDITED),
]
ON = Authorizations(RESOURCES, ())


def test_a_server_has_those_that_name_it_select_it_or_target_its_namespace() -> None:
    assert names(list(ON.on_server(WEB, audit=False))) == ["s-all", "s-labels", "s-name", "p-namespace", "p-server"]
    assert names(list(ON.on_server(WEB, audit=True))) == ["s-audited", "p-audited"]


def test_a_route_has_those_that_target_it_by_group_kind_and_name() -> None:
    assert names(list(ON.on_route(API, audit=False))) == ["p-route"]
    assert names(list(ON.on_route(API, audit=True))) == ["p-audited-route"]
    assert list(ON.on_route(None, audit=False)) == []


def test_a_workload_has_those_that_target_it_in_any_way() -> None:
    assert names(list(ON.on_workload(audit=False))) == ["p-account", "p-deployment"]
    assert names(list(ON.on_workload(audit=True))) == ["p-audited-account"]


def test_the_order_is_that_of_names_whatever_the_order_of_files() -> None:
    turned = Authorizations(reversed(RESOURCES), ())
    assert list(turned.on_server(WEB, audit=False)) == list(ON.on_server(WEB, audit=False))


# Requirements

CLIENTS = resource(MeshTLSAuthentication, f"identities: [{mesh_name('web')}]", named("clients"))
OFFICE = resource(NetworkAuthentication, "networks: [{cidr: 10.0.0.0/8}]", named("office"))
OTHERS = resource(MeshTLSAuthentication, f"identities: [{mesh_name('vote')}]", named("others"))
ACCOUNT = "{kind: ServiceAccount, name: web}"
NOBODY: dict[Attribute, Known] = {MESH_NAME: None}
FAR: dict[Attribute, Known] = {ADDRESS: "8.8.8.8"}

# References; whether `web` inside, an anonymous caller inside, and `web` from outside are allowed
REQUIRED = [
    ("", (True, True, True)),
    (MESH_REF, (True, False, True)),
    (NETWORK_REF, (True, True, False)),
    (ACCOUNT, (True, False, True)),
    (f"{MESH_REF}, {NETWORK_REF}", (True, False, False)),
    (f"{ACCOUNT}, {NETWORK_REF}", (True, False, False)),
    (f"{MESH_REF}, {ACCOUNT}", (True, False, True)),
    # several of a kind are ANDed (ruling 32)
    (f"{MESH_REF}, {MESH_REF.replace('clients', 'others')}", (False, False, False)),
    (f"{ACCOUNT}, {ACCOUNT.replace('web', 'vote')}", (False, False, False)),
    # a missing authentication authorizes no client (ruling 33)
    (MESH_REF.replace("clients", "missing"), (False, False, False)),
    (f"{NETWORK_REF}, {MESH_REF.replace('}', ', namespace: pay}')}", (False, False, False)),
    (f"{MESH_REF}, {NETWORK_REF.replace('office', 'clients')}", (False, False, False)),
]


@pytest.mark.parametrize(("refs", "expected"), REQUIRED)
def test_all_requirements_must_be_met(refs: str, expected: tuple[bool, ...]) -> None:
    (rule,) = Authorizations([policy("p", ON_SERVER, refs), CLIENTS, OFFICE, OTHERS], ()).on_server(WEB, audit=False)
    assert tuple(holds(rule.when, call(change)) for change in ({}, NOBODY, FAR)) == expected


def test_without_requirements_everybody_gets_in_and_with_a_missing_one_the_rule_says_why() -> None:
    (everybody,) = Authorizations([policy("p", ON_SERVER)], ()).on_server(WEB, audit=False)
    assert everybody.when == ALWAYS
    (nobody,) = Authorizations([policy("p", ON_SERVER, MESH_REF)], ()).on_server(WEB, audit=False)
    assert nobody.when == NEVER
    said = "refers to MeshTLSAuthentication/shop/clients, which does not exist"
    assert str(nobody.origin) == f"AuthorizationPolicy/shop/p {said}"
