"""Resources give the layer of a workload: port, then Server, then route, then the union of authorizations."""

from __future__ import annotations

from itertools import permutations

import pytest

from eastgate.authority.authority import programs_of
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.ir import AllowAny, Chain, Known, Layer, Observe, Refusal, Rule
from eastgate.ir.attributes import ADDRESS, MESH_NAME, METHOD, PATH, PORT, Attribute
from eastgate.settings import Settings
from tests.dialects.linkerd.cluster import (
    AUDIT,
    MESH_REF,
    ON_ACCOUNT,
    ON_NAMESPACE,
    ON_ROUTE,
    ON_SERVER,
    OPAQUE_PORTS,
    gateway_route,
    grpc_route,
    mesh,
    pod,
    policy,
    route,
    server,
    server_authorization,
)
from tests.dialects.linkerd.reading import DEFAULT, authority, mesh_name, outcome

DENY = Settings(sections=(LinkerdSettings(linkerd_default_policy=InboundPolicy.DENY),))
PROBE = "livenessProbe: {httpGet: {path: /healthz, port: 80}}"
CLIENTS = mesh("clients", mesh_name("web"))


def layer(text: str, settings: Settings = DEFAULT) -> Layer:
    """Return the single layer of the pod `web`."""
    (only,) = programs_of(authority(text, settings)).program("shop/web").layers
    return only


def stage_lines(chain: Chain) -> list[str]:
    """Return each stage as a line: its name and refusal, and its rules by their policy or origin."""
    lines = []
    for stage in chain.stages:
        assert isinstance(stage, AllowAny | Observe)
        refusal = f" ({int(stage.refusal)})" if isinstance(stage, AllowAny) else ""
        lines.append(f"{stage.name}{refusal}: {', '.join(_called(rule) for rule in stage.rules)}".strip())
    return lines


def _called(rule: Rule) -> str:
    origin = rule.origin
    if origin.policy is not None:
        return f"{origin.policy.name} {origin.label}".split(",", maxsplit=1)[0].strip()
    return origin.label.split(",", maxsplit=1)[0].split(" (", maxsplit=1)[0]


def cases(one: Layer) -> list[tuple[str, list[str]]]:
    """Return the scope of each chain, and its stages."""
    return [(str(chain.scope), stage_lines(chain)) for chain in one.chains]


ELSEWHERE = ("no Server has this port", ["authorized (403): default policy all-unauthenticated"])
HTTP = "port: 80, proxyProtocol: HTTP/2"
SCOPE = "Server shop/web, protocol HTTP/2"

LAYERS: list[tuple[str, str, list[tuple[str, list[str]]]]] = [
    (
        "a Server that authorizes nobody",
        server(spec=HTTP),
        [(SCOPE, ["authorized (403): localhost"]), ELSEWHERE],
    ),
    (
        "the union of all authorizations, and the access policy last",
        server(spec=f"{HTTP}, accessPolicy: all-authenticated")
        + server_authorization("s", "meshTLS: {identities: [a]}")
        + policy("p", ON_SERVER, MESH_REF)
        + policy("m", ON_NAMESPACE, MESH_REF)
        + policy("a", ON_ACCOUNT, MESH_REF)
        + CLIENTS,
        [
            (SCOPE, ["authorized (403): s, m, p, a, web accessPolicy all-authenticated, localhost"]),
            ("no Server has this port", ["authorized (0): a, localhost"]),
            ("no Server has this port", ["authorized (403): a, localhost"]),
        ],
    ),
    (
        "where everybody gets in, localhost is nobody special",
        server(spec=f"{HTTP}, accessPolicy: audit"),
        [(SCOPE, ["authorized (403): web accessPolicy audit"]), ELSEWHERE],
    ),
    (
        "an opaque port is one of connections",
        server(spec="port: 80, proxyProtocol: opaque"),
        [("Server shop/web, protocol opaque", ["authorized (0): localhost"]), ELSEWHERE],
    ),
    (
        "an unknown protocol is of both",
        server(),
        [
            ("Server shop/web, protocol unknown", ["authorized (0): localhost"]),
            ("Server shop/web, protocol unknown", ["authorized (403): localhost"]),
            ELSEWHERE,
        ],
    ),
    (
        "a route adds to its Server, and what takes none is not found",
        server(spec=HTTP)
        + route("api", "/api")
        + policy("r", ON_ROUTE, MESH_REF)
        + policy("p", ON_SERVER, MESH_REF)
        + CLIENTS,
        [
            (f"{SCOPE}, HTTPRoute shop/api", ["authorized (403): r, p, localhost"]),
            (f"{SCOPE}, HTTPRoute shop/api", ["authorized (403): r, p, localhost"]),
            (f"{SCOPE}: none of its routes", ["no-inbound-route (404):"]),
            ELSEWHERE,
        ],
    ),
    (
        "audited authorizations are observed",
        server(spec=HTTP)
        + policy("p", ON_SERVER, MESH_REF, AUDIT)
        + server_authorization("s", "unauthenticated: true", metadata=AUDIT)
        + CLIENTS,
        [(SCOPE, ["audit: s, p", "authorized (403): localhost"]), ELSEWHERE],
    ),
    (
        "an audited Server is observed with all it would allow, and does not own its port",
        server(spec=f"{HTTP}, accessPolicy: all-authenticated", metadata=AUDIT)
        + policy("p", ON_SERVER, MESH_REF)
        + CLIENTS,
        [
            (
                "no Server has this port",
                ["audit: p, web accessPolicy all-authenticated", *ELSEWHERE[1]],
            ),
            ELSEWHERE,
        ],
    ),
    (
        "an audited policy on the workload leaves the default",
        policy("a", ON_ACCOUNT, MESH_REF, AUDIT) + CLIENTS,
        [("no Server has this port", ["audit: a", "authorized (403): default policy all-unauthenticated"])],
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in LAYERS], ids=[row[0] for row in LAYERS])
def test_each_port_has_its_chains(text: str, expected: list[tuple[str, list[str]]]) -> None:
    assert cases(layer(pod() + text)) == expected


def test_the_layer_has_a_name_and_the_order_of_files_does_not_matter() -> None:
    texts = [server(), server("b", "port: 90"), policy("p", ON_SERVER), policy("q", ON_NAMESPACE), route("api", "/api")]
    layers = [cases(layer(pod() + "".join(order))) for order in permutations(texts)]
    assert layer(pod() + server()).name == "workload/inbound"
    assert all(one == layers[0] for one in layers)


def test_a_workload_that_nobody_mentions_has_no_layer() -> None:
    assert programs_of(authority(pod())).program("shop/web").layers == ()


# Owners of a port

OLD, NEW = "creationTimestamp: '2025-01-01T00:00:00Z'", "creationTimestamp: '2026-01-01T00:00:00Z'"
OWNERS = [
    ([("b", OLD), ("a", NEW)], "b"),
    ([("b", OLD), ("a", OLD)], "a"),
    ([("b", ""), ("a", OLD)], "b"),  # without a creation time: before all others
    ([("b", ""), ("a", "")], "a"),
    ([("a", f"{OLD}, {AUDIT}"), ("b", NEW)], "b"),
]


@pytest.mark.parametrize(("servers", "owner"), OWNERS)
def test_the_oldest_server_owns_a_port(servers: list[tuple[str, str]], owner: str) -> None:
    text = "".join(server(name, HTTP, metadata) for name, metadata in servers)
    scopes = {str(chain.scope) for chain in layer(pod() + text).chains}
    assert scopes == {f"Server shop/{owner}, protocol HTTP/2", "no Server has this port"}


def test_a_server_with_a_name_owns_all_ports_of_that_name_but_those_of_an_older_one() -> None:
    text = pod() + server("a", "port: http, accessPolicy: audit", NEW) + server("b", "port: 81", OLD)
    of = authority(text, DENY)
    assert [outcome(of, "shop/web", {PORT: port}).allowed for port in (80, 81, 90)] == [True, False, False]


# The response to a denied client

Change = dict[Attribute, Known]
TCP: Change = {METHOD: None, PATH: None}
NOBODY: Change = {MESH_NAME: None}

REFUSALS: list[tuple[str, str, Change, int]] = [
    ("no Server, HTTP", "", NOBODY, 403),
    ("no Server, TCP", "", {**NOBODY, **TCP}, 0),
    ("HTTP", server(spec=HTTP), NOBODY, 403),
    ("opaque", server(spec="port: 80, proxyProtocol: opaque"), NOBODY, 0),
    ("TLS", server(spec="port: 80, proxyProtocol: TLS"), NOBODY, 0),
    ("unknown, HTTP", server(), NOBODY, 403),
    ("unknown, TCP", server(), {**NOBODY, **TCP}, 0),
    ("no route", server(spec=HTTP) + route("api", "/api"), NOBODY, 404),
    ("no route though all may come in", server(spec=f"{HTTP}, accessPolicy: audit") + route("api", "/api"), {}, 404),
    ("a route", server(spec=HTTP) + route("api", "/api"), {**NOBODY, PATH: "/api/x"}, 403),
    ("a route of Gateway API", server(spec=HTTP) + gateway_route("api", "/api"), {**NOBODY, PATH: "/x"}, 404),
    ("no fall-through to a wider route",
     server(spec=HTTP) + route("api", "/api") + route("all", "/")
     + policy("r", ON_ROUTE.replace("api", "all")), {PATH: "/api"}, 403),
    ("the wider route", server(spec=HTTP) + route("api", "/api") + route("all", "/")
     + policy("r", ON_ROUTE.replace("api", "all")), {PATH: "/other"}, 200),
    ("routes say nothing about TCP", server(spec="port: 80, accessPolicy: audit") + route("api", "/api"), TCP, 200),
    ("gRPC", server(spec="port: 80, proxyProtocol: gRPC") + grpc_route("g", "a.B"),
     {METHOD: "POST", PATH: "/a.C/D"}, 404),
    ("gRPC, its route", server(spec="port: 80, proxyProtocol: gRPC") + grpc_route("g", "a.B"),
     {METHOD: "POST", PATH: "/a.B/D"}, 403),
    ("gRPC does not look at HTTPRoutes", server(spec="port: 80, proxyProtocol: gRPC") + route("api", "/api"), {}, 403),
    ("localhost", server(spec=HTTP), {**NOBODY, ADDRESS: "127.0.0.1"}, 200),
    ("localhost does not help without a route", server(spec=HTTP) + route("a", "/a"), {ADDRESS: "127.0.0.1"}, 404),
]  # fmt: skip


@pytest.mark.parametrize(("text", "change", "status"), [row[1:] for row in REFUSALS], ids=[row[0] for row in REFUSALS])
def test_a_denied_client_sees_403_404_or_a_closed_connection(text: str, change: Change, status: int) -> None:
    assert outcome(authority(pod() + text, DENY), "shop/web", change).status == status


# Probes


@pytest.mark.parametrize(
    ("text", "change", "allowed"),
    [
        (server(), {}, True),
        (server(spec=HTTP), {}, True),
        ("", {}, True),
        (server(), {METHOD: "POST"}, False),
        (server(), {PATH: "/healthz/x"}, False),
        (server(), {PORT: 81}, False),
        (server(spec="port: 80, proxyProtocol: gRPC"), {}, False),
        (server(spec="port: 80, proxyProtocol: opaque"), {}, False),
        (server() + route("api", "/healthz"), {}, False),  # a route replaces it
        (server() + gateway_route("api", "/healthz"), {}, False),
    ],
)
def test_the_kubelet_gets_in_with_its_probes(text: str, change: Change, allowed: bool) -> None:
    of = authority(pod(more=PROBE) + text, DENY)
    assert outcome(of, "shop/web", {**NOBODY, PATH: "/healthz", **change}).allowed is allowed


def test_probes_come_from_the_probe_networks_which_may_be_none() -> None:
    for networks, address, allowed in [
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "8.8.8.8", False),
        ("", "10.1.2.3", False),
    ]:
        settings = Settings.from_mapping({"linkerdProbeNetworks": networks, "linkerdDefaultPolicy": "deny"})
        of = authority(pod(more=PROBE) + server(), settings)
        assert outcome(of, "shop/web", {**NOBODY, PATH: "/healthz", ADDRESS: address}).allowed is allowed


# Ruling 31


def test_a_policy_on_the_workload_governs_every_port_and_takes_the_place_of_the_default() -> None:
    open_server = server(spec=f"{HTTP}, accessPolicy: cluster-unauthenticated")
    of = authority(pod() + open_server + policy("a", ON_ACCOUNT, MESH_REF) + CLIENTS)
    for port, change, allowed in [(80, NOBODY, True), (90, {}, True), (90, NOBODY, False), (7, NOBODY, False)]:
        assert outcome(of, "shop/web", {PORT: port, **change}).allowed is allowed


def test_opaque_ports_are_decided_by_the_connection_unless_a_server_owns_them() -> None:
    of = authority(pod(annotations=f"{{{OPAQUE_PORTS}: '80,90'}}") + server(spec=HTTP), DENY)
    seen = [outcome(of, "shop/web", {PORT: port}).status for port in (80, 90, 81)]
    assert seen == [Refusal.FORBIDDEN, Refusal.CLOSED, Refusal.FORBIDDEN]
    assert "no Server has this port, which is opaque" in {
        str(c.scope) for c in programs_of(of).program("shop/web").layers[0].chains
    }
