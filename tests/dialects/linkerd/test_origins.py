"""Every rule has its line in the manifest, and for each of its attributes the text that names it."""

from __future__ import annotations

import pytest

from eastgate.authority.authority import programs_of
from eastgate.dialects.linkerd.model import AuthorizationPolicy, LinkerdResource, Server, ServerAuthorization
from eastgate.ir import Layer, Origin, Rule, rules_of
from eastgate.ir.attributes import ADDRESS, MESH_NAME, Attribute
from eastgate.settings import Settings
from tests.dialects.linkerd.cluster import (
    DEFAULT_POLICY,
    MESH_REF,
    NETWORK_REF,
    ON_SERVER,
    mesh,
    namespace,
    network,
    pod,
    policy,
    server,
    server_authorization,
)
from tests.dialects.linkerd.reading import DEFAULT, authority, judge, manifest, resource

Where = tuple[int, str]  # line, and the text that is underlined


def placed(origin: Origin) -> tuple[Where | None, dict[Attribute, Where]]:
    where = (origin.span.line, origin.span.underlined) if origin.span is not None else None
    return where, {attribute: (span.line, span.underlined) for attribute, span in origin.parts}


AUTHORIZATIONS: list[tuple[str, Where, dict[Attribute, Where]]] = [
    (
        "server: {name: web}\nclient:\n  networks:\n  - cidr: 10.0.0.0/8\n  meshTLS:\n    identities: ['*']",
        (7, "networks:"),
        {ADDRESS: (8, "- cidr: 10.0.0.0/8"), MESH_NAME: (10, "identities: ['*']")},
    ),
    ("server: {name: web}\nclient: {unauthenticated: true}", (6, "{unauthenticated: true}"), {}),
    (
        "server: {name: web}\nclient: {meshTLS: {identities: ['*']}, networks: []}",
        (6, "{meshTLS: {identities: ['*']}, networks: []}"),
        {ADDRESS: (6, "[]"), MESH_NAME: (6, "{identities: ['*']}")},
    ),
]


@pytest.mark.parametrize(("spec", "where", "parts"), AUTHORIZATIONS)
def test_a_server_authorization_points_at_its_client(spec: str, where: Where, parts: dict[Attribute, Where]) -> None:
    read = resource(ServerAuthorization, spec)
    assert placed(read.rule.origin) == (where, parts)
    assert list(read.origins) == [read.rule.origin]
    assert (read.rule.origin.policy, read.rule.origin.index) == (read.ref, 0)


def test_a_policy_points_at_its_requirements() -> None:
    spec = "targetRef: {kind: Namespace, name: shop}\nrequiredAuthenticationRefs:\n- kind: ServiceAccount\n  name: web"
    read = resource(AuthorizationPolicy, spec)
    assert placed(read.origin) == ((7, "- kind: ServiceAccount"), {})
    assert list(read.origins) == [read.origin]
    assert (read.requirements[0].span.line, read.requirements[0].span.underlined) == (7, "kind: ServiceAccount")


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ("podSelector: {}\nport: 80\naccessPolicy: audit", (7, "audit")),
        ("podSelector: {}\nport: 80", (1, "apiVersion: policy.linkerd.io/v1beta3")),
    ],
)
def test_a_server_points_at_its_access_policy_or_at_itself(spec: str, where: Where) -> None:
    span = resource(Server, spec).access_span
    assert (span.line, span.underlined) == where


def test_what_is_only_referred_to_has_no_rules_of_its_own() -> None:
    read, _ = judge(manifest("MeshTLSAuthentication", "identities: ['*']"))
    assert isinstance(read, LinkerdResource)
    assert list(read.origins) == []


# In the layers of a workload


def rules(text: str, settings: Settings = DEFAULT) -> dict[str, Rule]:
    """Return the rules of the pod `web`, by their origins."""
    layers: tuple[Layer, ...] = programs_of(authority(text, settings)).program("shop/web").layers
    stages = [stage for layer in layers for chain in layer.chains for stage in chain.stages]
    return {str(rule.origin): rule for stage in stages for rule in rules_of(stage)}


def test_a_rule_points_into_the_authentications_that_it_refers_to() -> None:
    text = pod() + server() + policy("p", ON_SERVER, f"{MESH_REF}, {NETWORK_REF}")
    found = rules(text + mesh("clients", "'*'") + network("office", "10.0.0.0/8"))
    where, parts = placed(found["AuthorizationPolicy/shop/p rule 0"].origin)
    assert where is not None
    assert where[1] == f"[{MESH_REF}, {NETWORK_REF}]"
    assert [text for _, text in parts.values()] == ["['*']", "[{cidr: '10.0.0.0/8'}]"]
    assert list(parts) == [MESH_NAME, ADDRESS]


def test_a_missing_authentication_is_shown_by_the_reference_to_it() -> None:
    found = rules(pod() + server() + policy("p", ON_SERVER, MESH_REF))
    missing = "AuthorizationPolicy/shop/p refers to MeshTLSAuthentication/shop/clients, which does not exist"
    assert [text for _, text in placed(found[missing].origin)[1].values()] == [MESH_REF]


def test_what_nobody_wrote_says_what_it_is() -> None:
    found = rules(pod(more="livenessProbe: {httpGet: {path: /healthz, port: 80}}") + server())
    assert set(found) == {
        "default policy all-unauthenticated (setting linkerdDefaultPolicy)",
        "localhost, which Linkerd's proxy always lets in,",
        "the route that Linkerd makes for probes",
    }


def test_a_default_says_who_chose_it_and_points_there() -> None:
    text = pod() + namespace(f"{{{DEFAULT_POLICY}: all-authenticated}}")
    label = f"default policy all-authenticated (annotation {DEFAULT_POLICY} of namespace shop)"
    span = rules(text)[label].origin.span
    assert span is not None
    assert span.line == text.splitlines().index("kind: Namespace")  # the line before: the start of the document


def test_an_access_policy_is_a_rule_of_its_server() -> None:
    found = rules(
        pod()
        + server(spec="port: 80, accessPolicy: all-authenticated")
        + server_authorization("s", "unauthenticated: true")
    )
    origin = found["Server/shop/web accessPolicy all-authenticated"].origin
    assert placed(origin)[0] == (20, "all-authenticated")
