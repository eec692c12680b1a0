"""Ways to write a query so that a proxy reads another one than the engine does."""

from __future__ import annotations

import pytest

from eastgate.mesh.calls import make_calls
from eastgate.questions import Question
from tests.faults.meshes import running
from tests.faults.worlds import HTTP, Manifest, world

_LINKERD = "policy.linkerd.io"


def _resource(kind: str, name: str, version: str, **spec: object) -> Manifest:
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": f"{_LINKERD}/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def _route(name: str, account: str, *matches: Manifest) -> list[Manifest]:
    """A way in that is open to one account."""
    parent = {"group": _LINKERD, "kind": "Server", "name": "server"}
    route = {"group": _LINKERD, "kind": "HTTPRoute", "name": name}
    who = {"group": _LINKERD, "kind": "MeshTLSAuthentication", "name": account}
    identities = [{"kind": "ServiceAccount", "name": account}]
    return [
        _resource("HTTPRoute", name, "v1beta3", parentRefs=[parent], rules=[{"matches": list(matches)}]),
        _resource("AuthorizationPolicy", name, "v1alpha1", targetRef=route, requiredAuthenticationRefs=[who]),
        _resource("MeshTLSAuthentication", account, "v1alpha1", identityRefs=identities),
    ]


def _only_for_bob(value: str) -> list[Manifest]:
    """Whoever asks with `a` of this value must be bob; alice may ask for everything else."""
    selector = {"matchLabels": {"app": "server"}}
    return [
        *world(),
        _resource("Server", "server", "v1beta3", podSelector=selector, port=HTTP, proxyProtocol="HTTP/1"),
        *_route("special", "bob", {"queryParams": [{"name": "a", "value": value}]}),
        *_route("rest", "alice", {"path": {"type": "PathPrefix", "value": "/"}}),
    ]


async def _agree(value: str, query: str, verdict: str) -> None:
    async with running(*_only_for_bob(value)) as mesh:
        [made] = await make_calls(mesh.mesh, Question("sa:shop/alice", "pod:shop/server", HTTP, "GET", f"/{query}"))
        assert made.decision.verdict == verdict
        assert made.agrees, made.called


@pytest.mark.parametrize(
    ("value", "query", "verdict"),
    [
        ("x", "", "allow"),
        ("x", "?a=x", "deny"),
        ("x", "?b=1&a=x&c=2", "deny"),
        ("x", "?%61=%78", "deny"),
        ("x", "?a=x&a=y", "deny"),
        ("x y", "?a=x%20y", "deny"),
        ("x", "?a=x#y", "deny"),
        ("x", "?a=X", "allow"),
    ],
)
async def test_proxy_and_engine_read_the_same_query(value: str, query: str, verdict: str) -> None:
    await _agree(value, query, verdict)


@pytest.mark.parametrize(("value", "query"), [("x y", "?a=x+y"), ("", "?a="), ("", "?a")])
async def test_what_proxies_read_otherwise_in_a_query_opens_nothing(value: str, query: str) -> None:
    """Envoy knows no `+` for a blank, and no parameter without a value: a port that would need it is closed."""
    await _agree(value, query, "deny")
