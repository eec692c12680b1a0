"""AccessPolicies with tool rules, in several shapes, and the calls that the last of their rules allows.

A rule counts as many tool rules as it has tools: one agent may call one tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, Final, TypeVar

from bench.plans import TRUST_DOMAIN
from eastgate.authority.authority import Authority
from eastgate.authority.reading import read_manifests
from eastgate.cluster import service_account_id
from eastgate.settings import Settings

__all__ = ["AGENTS", "GATEWAY", "HOST", "SETTINGS", "SHAPES", "TWO_LEVELS", "agent", "authority_of", "call"]

T = TypeVar("T")
Manifest = dict[str, Any]

SETTINGS = Settings(trust_domain=TRUST_DOMAIN).enforced()
GATEWAY = ("bench", "agents")
HOST = "mcp.example"
AGENTS, RULES, TOOLS = "many agents", "one agent, many rules", "one agent, ten tools a rule"
LEVELS, OWN_LEVELS = "many agents, two levels", "one agent, two levels"
SHAPES: Final = (AGENTS, RULES, TOOLS, LEVELS, OWN_LEVELS)
"""A rule with one tool for each agent; all rules for one agent, with one tool each, or with ten, the maximum of a
rule; half of the rules at the Gateway and half at the backend, for many agents or for one."""
TWO_LEVELS: Final = {LEVELS: AGENTS, OWN_LEVELS: RULES}
_MAX_ENTRIES = 10  # rules of a policy, and tools of a rule, by the specification
_GROUP = "agentic.prototype.x-k8s.io"


def agent(shape: str, number: int) -> str:
    """Return the identity that a tool rule names."""
    return service_account_id(TRUST_DOMAIN, GATEWAY[0], _account(shape, number))


def _account(shape: str, number: int) -> str:
    return f"agent-{number}" if shape in (AGENTS, LEVELS) else "agent"


def _tool(number: int) -> str:
    return f"tool-{number}"


def call(number: int) -> bytes:
    """Return the request that calls the tool of a rule."""
    params = {"name": _tool(number), "arguments": {"text": "hello", "count": 3}}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()
    head = [
        "POST /mcp HTTP/1.1",
        f"host: {HOST}",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        "mcp-protocol-version: 2025-06-18",
        f"content-length: {len(body)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


def authority_of(port: int, shape: str, rules: int) -> Authority:
    """Return a world with one Gateway, one MCP server behind it, and this many tool rules; 0: no policy."""
    objects = [*_world(port), *_policies(shape, rules)]
    text = "---\n".join(json.dumps(each) + "\n" for each in objects)
    authority = Authority(read_manifests(["-"], SETTINGS, stdin=BytesIO(text.encode())))
    assert not authority.rejected, authority.rejected[0]
    return authority


def _world(port: int) -> Iterator[Manifest]:
    listener = {"name": "mcp", "port": port, "protocol": "HTTP"}
    yield _object("gateway.networking.k8s.io/v1", "Gateway", GATEWAY[1], gatewayClassName="bench", listeners=[listener])
    backend = {"group": _GROUP, "kind": "XBackend", "name": "server"}
    route = {"parentRefs": [{"name": GATEWAY[1]}], "hostnames": [HOST], "rules": [{"backendRefs": [backend]}]}
    yield _object("gateway.networking.k8s.io/v1", "HTTPRoute", "server", **route)
    yield _object(f"{_GROUP}/v0alpha0", "XBackend", "server", mcp={"serviceName": "server", "port": 8080})


def _policies(shape: str, count: int) -> Iterator[Manifest]:
    if shape in TWO_LEVELS:
        target = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": GATEWAY[1]}
        yield from _targeting(target, _rules(TWO_LEVELS[shape], count // 2), "gateway")
        count -= count // 2
    target = {"group": _GROUP, "kind": "XBackend", "name": "server"}
    yield from _targeting(target, _rules(shape, count), "backend")


def _targeting(target: Manifest, rules: Sequence[Manifest], name: str) -> Iterator[Manifest]:
    for number, some in enumerate(_batches(rules, _MAX_ENTRIES)):
        spec = {"targetRefs": [target], "rules": list(some)}
        yield _object(f"{_GROUP}/v0alpha0", "XAccessPolicy", f"{name}-{number}", **spec)


def _rules(shape: str, count: int) -> list[Manifest]:
    each = _MAX_ENTRIES if shape == TOOLS else 1
    return [
        {
            "name": f"rule-{numbers[0]}",
            "source": {"type": "ServiceAccount", "serviceAccount": {"name": _account(shape, numbers[0])}},
            "authorization": {"type": "InlineTools", "tools": [_tool(number) for number in numbers]},
        }
        for numbers in _batches(range(count), each)
    ]


def _batches(entries: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (entries[start : start + size] for start in range(0, len(entries), size))


def _object(version: str, kind: str, name: str, **spec: object) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": GATEWAY[0]}, "spec": spec}
