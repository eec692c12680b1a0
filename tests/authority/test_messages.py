"""Questions about an MCP message alone, one after the other: no answer depends on an earlier question."""

from __future__ import annotations

from itertools import permutations

import pytest

from eastgate import Question, Settings
from tests.differential.world import Manifest
from tests.worlds.test_generated_clusters import authority_of

GATEWAYS, AGENTS, TODAY = "gateway.networking.k8s.io", "agentic.prototype.x-k8s.io", "agentic.networking.x-k8s.io"
BACKEND = {"group": AGENTS, "kind": "XBackend", "name": "b"}


def manifest(version: str, kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "n"}, "spec": spec}


def route(listener: str) -> Manifest:
    matches = [{"path": {"type": "PathPrefix", "value": f"/{listener}"}}]
    rules = [{"matches": matches, "backendRefs": [BACKEND]}]
    spec = {"parentRefs": [{"name": "g", "sectionName": listener}], "rules": rules}
    return manifest(f"{GATEWAYS}/v1", "HTTPRoute", listener, spec)


LISTENERS = [{"name": "plain", "protocol": "HTTP", "port": 80}, {"name": "secure", "protocol": "HTTPS", "port": 80}]
RULE = {"name": "r", "authorization": {"type": "Inline", "paths": [{"type": "PathPrefix", "value": "/plain"}]}}
WORLD = [
    manifest(f"{GATEWAYS}/v1", "Gateway", "g", {"gatewayClassName": "c", "listeners": LISTENERS}),
    manifest(f"{AGENTS}/v0alpha0", "XBackend", "b", {"mcp": {"serviceName": "b", "port": 8080}}),
    route("plain"),
    route("secure"),
    manifest(f"{TODAY}/v1alpha1", "XAccessPolicy", "p", {"targetRefs": [BACKEND], "action": "Deny", "rules": [RULE]}),
]


@pytest.mark.parametrize("to", ["backend:n/b", "gateway:n/g"])
def test_a_handshake_is_that_of_its_own_question(to: str) -> None:
    allowed = {None: False, "a.example": True}  # without TLS, or with it
    for order in permutations(allowed):
        authority = authority_of(WORLD, Settings())
        verdicts = {sni: authority.decide(Question.of("sa:n/agent", to, tool="add", sni=sni)).allowed for sni in order}
        assert verdicts == allowed
