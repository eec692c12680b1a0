"""Differences that generated gateways have found, each as a test of its own."""

from __future__ import annotations

from collections.abc import Iterator
from os import getpid
from typing import Any

import pytest

from tests.differential.asking import Caller, Http
from tests.differential.gateways.asking import GatewayAsk
from tests.differential.gateways.bench import GatewayAnswer, GatewayBench
from tests.differential.gateways.corpus import OWN_SESSION
from tests.differential.gateways.running import compare_gateway, enforced_at_gateway
from tests.differential.gateways.world import SETTINGS
from tests.differential.running import Tally
from tests.differential.world import Manifest
from tests.worlds.access_generate import SEED, TODAY

_API = "gateway.networking.k8s.io/v1"
_GROUP = _API.partition("/")[0]
_AGENT = Caller("spiffe://td/ns/n/sa/x", "127.0.0.2")
_CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}'
_ASKED = {"protocol": "GRPC", "grpc": {}, "backendRef": {"name": "authz", "port": 1}}


@pytest.fixture(scope="module")
def bench() -> Iterator[GatewayBench]:
    with GatewayBench(f"examples-{getpid()}") as bench:
        yield bench


def _object(kind: str, name: str, spec: Manifest, version: str = _API) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "n"}, "spec": spec}


def _gateway(*routes: Manifest) -> list[Manifest]:
    tls = {"certificateRefs": [{"name": "elsewhere"}]}
    listeners = [
        {"name": "http", "port": 8080, "protocol": "HTTP"},
        {"name": "https", "port": 8443, "protocol": "HTTPS", "tls": tls},
    ]
    return [_object("Gateway", "g", {"gatewayClassName": "any", "listeners": listeners}), *routes]


def _route(**rule: Any) -> Manifest:
    to = [{"group": SEED.partition("/")[0], "kind": "XBackend", "name": "b1"}]
    rule = rule or {"backendRefs": to}
    return _object("HTTPRoute", "one", {"parentRefs": [{"name": "g"}], "rules": [rule]})


def _access(name: str, kind: str, target: str, **spec: Any) -> Manifest:
    group = _GROUP if kind == "Gateway" else SEED.partition("/")[0]
    spec = {"targetRefs": [{"group": group, "kind": kind, "name": target}], **spec}
    return _object("XAccessPolicy", name, spec, TODAY)


def _try(bench: GatewayBench, manifests: list[Manifest], ask: GatewayAsk) -> GatewayAnswer:
    """Send a request, check that gateway and engine agree, and return the result."""
    authority = enforced_at_gateway(bench, manifests, SETTINGS)
    assert authority is not None
    assert not list(compare_gateway(bench, authority, manifests, [ask], Tally()))
    return bench.attempt([bench.prepared(ask)])[0]


def _post(target: str = "/mcp", content_type: str = "application/json", **headers: str) -> Http:
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Http("POST", target, "a.example", (("content-type", content_type), *named))


def test_https_without_a_hostname(bench: GatewayBench) -> None:
    answer = _try(bench, _gateway(_route()), GatewayAsk(_AGENT, 8443, "a.example", _post(), _CALL))
    assert (answer.status, answer.server) == (200, "s1")


@pytest.mark.parametrize(
    ("port", "redirect", "location"),
    [
        (8443, {"hostname": "b.example"}, "https://b.example:8443/mcp"),
        (8080, {"hostname": "b.example"}, "http://b.example:8080/mcp"),
        (8080, {"scheme": "https", "hostname": "b.example"}, "https://b.example/mcp"),
        (8080, {"port": 80, "hostname": "b.example"}, "http://b.example/mcp"),
        (8443, {"port": 9000}, "https://a.example:9000/mcp"),
    ],
    ids=str,
)
def test_redirects_keep_scheme_and_port(bench: GatewayBench, port: int, redirect: Manifest, location: str) -> None:
    filters = [{"type": "RequestRedirect", "requestRedirect": redirect}]
    ask = GatewayAsk(_AGENT, port, "a.example" if port == 8443 else None, _post(), _CALL)
    answer = _try(bench, _gateway(_route(filters=filters)), ask)
    assert (answer.status, answer.header("location")) == (302, location)


def test_a_session_of_another_caller_is_refused_also_where_the_message_does_not_matter(bench: GatewayBench) -> None:
    policy = _access("p", "XBackend", "b1", action="Allow", rules=[{"name": "r"}])
    tools = _access(
        "t",
        "XBackend",
        "b1",
        action="Deny",
        rules=[
            {
                "name": "r",
                "source": {"type": "SPIFFE", "spiffe": "spiffe://td/ns/n/sa/y"},
                "authorization": {"type": "Inline", "mcp": {"methods": [{"name": "tools/call", "params": ["del"]}]}},
            }
        ],
    )
    manifests = [*_gateway(_route()), policy, tools]
    for session, server in (("s-1", None), (OWN_SESSION, "s1")):
        answer = _try(
            bench, manifests, GatewayAsk(_AGENT, 8080, None, _post("/mcp", "text/plain", mcp_session_id=session), _CALL)
        )
        assert answer.server == server


def test_the_authorizer_knows_the_name_in_the_handshake(bench: GatewayBench) -> None:
    spec = {
        "targetRef": {"group": _GROUP, "kind": "Gateway", "name": "g"},
        "rules": [{"hosts": ["b.toys.com"], "paths": ["/mcp"]}],
        "authSchemes": [
            {
                "hosts": ["b.toys.com"],
                "identity": [
                    {
                        "name": "no",
                        "apiKey": {"labelSelectors": {"group": "none"}},
                        "credentials": {"in": "custom_header", "keySelector": "x-key"},
                    }
                ],
            }
        ],
    }
    policy = _object("AuthPolicy", "a", spec, "apim.kuadrant.io/v1alpha1")
    asking = _access("p", "Gateway", "g", action="ExternalAuth", externalAuth=_ASKED)
    manifests = [*_gateway(_route()), policy, asking]
    for port, sni in ((8080, None), (8443, "a.example")):
        ask = GatewayAsk(_AGENT, port, sni, _post(x_answer_1="allow"), _CALL)
        assert _try(bench, manifests, ask).server == "s1"


def test_the_authorizer_resolves_only_the_dot_segments_that_the_gateway_resolved(bench: GatewayBench) -> None:
    asking = _access("p", "Gateway", "g", action="ExternalAuth", externalAuth=_ASKED)
    paths = [{"type": "PathPrefix", "value": "/mcp"}]
    rules = [{"name": "r", "authorization": {"type": "Inline", "paths": paths}}]
    allowing = _access("q", "Gateway", "g", action="Allow", rules=rules)
    manifests = [*_gateway(_route()), asking, allowing]
    answer = _try(
        bench, manifests, GatewayAsk(_AGENT, 8080, None, _post("/secret/%2e%2e;/mcp", x_answer_1="allow"), _CALL)
    )
    assert (answer.status, answer.server) == (400, None)


@pytest.mark.parametrize(
    "headers", [{"content_type": "text/plain"}, {"x_http_method_override": "DELETE"}, {"mcp_name": "del"}], ids=str
)
def test_the_authorizer_reads_no_message_where_the_gateway_reads_none(
    bench: GatewayBench, headers: dict[str, str]
) -> None:
    asking = _access("p", "Gateway", "g", action="ExternalAuth", externalAuth=_ASKED)
    mcp = {"methods": [{"name": "tools/call", "params": ["add"]}]}
    rules = [{"name": "r", "authorization": {"type": "Inline", "mcp": mcp}}]
    manifests = [*_gateway(_route()), asking, _access("q", "Gateway", "g", action="Allow", rules=rules)]
    assert _try(bench, manifests, GatewayAsk(_AGENT, 8080, None, _post(x_answer_1="allow"), _CALL)).server == "s1"
    answer = _try(bench, manifests, GatewayAsk(_AGENT, 8080, None, _post(x_answer_1="allow", **headers), _CALL))
    assert (answer.status, answer.server) == (400, None)


def test_routes_do_not_go_up_by_dots_whose_parameter_is_encoded(bench: GatewayBench) -> None:
    to_server = [{"name": "s2", "port": 80}]
    by_prefix = {"matches": [{"path": {"type": "PathPrefix", "value": "/a"}}], "backendRefs": to_server}
    spec = {"parentRefs": [{"name": "g"}], "rules": [by_prefix, {"backendRefs": [{"name": "s1", "port": 80}]}]}
    ask = GatewayAsk(_AGENT, 8080, None, _post("/a/..%3b/b"), _CALL)
    assert _try(bench, _gateway(_object("HTTPRoute", "one", spec)), ask).server in ("s2", None)
