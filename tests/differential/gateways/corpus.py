"""Requests similar to the drawn routes and policies: MCP messages, gRPC calls, plain HTTP, and tricks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from tests.attacks.headers import headers as odd_headers
from tests.attacks.hosts import hosts as odd_hosts
from tests.attacks.paths import targets as odd_targets
from tests.differential.asking import HTTP_1_1, HTTP_2, Caller, Http
from tests.differential.gateways.asking import GatewayAsk
from tests.differential.gateways.world import CALLERS, HTTPS, PLAIN
from tests.differential.world import Manifest
from tests.programs.drawn_answers import GRPC_HEADER, HTTP_HEADER, SLOW, STATUSES
from tests.worlds import access_generate

__all__ = ["FOREIGN_SESSION", "OWN_SESSION", "asks"]

OWN_SESSION, FOREIGN_SESSION = "own", "foreign"  # placeholders for a session id of the caller or of another
_HOSTS = ["a.example", "a.example", "b.example", "x.a.example", "toys.com", "a.toys.com", "b.toys.com", "other.org"]
_SPELLED_HOSTS = ["A.Example:8080", "a.toys.com:443", "TOYS.com", "a.example."]
_PATHS = ["/", "/mcp", "/mcp", "/mcp", "/mcp/x", "/mcpx", "/a", "/a/", "/ab", "/b/c", "/other", "/b//c", "/x/../a"]
_PATHS += ["/a?k=v", "/mcp?k=w&k=v", "/a?x-a=1&k=v", "/a?api_key=KEY1", "/b/c?x=1&api_key=KEY3", "/%C3%A9/x", "/%61"]
_PATHS += ["/mcp/..%2fa", "/a%5cx", "/b/%2e%2e;/a"]
_METHODS = [*access_generate.METHODS, *["tools/call"] * 6, "tools/list", "ping", "resources/read", "Tools/Call", "x"]
_TOOLS = [*access_generate.TOOLS, *["add"] * 3, "ADD", "add ", "ad", "add\u200b", "addd", "\u0430dd", ""]
_CREDENTIALS = [
    *(("authorization", f"APIKEY {key}") for key in ("KEY1", "KEY2", "KEY3", "no")),
    *(("x-key", key) for key in ("KEY1", "KEY2", "no")),
    *(("cookie", text) for text in ("KEY=KEY1", "a=b; KEY=KEY2")),
    ("authorization", "apikey KEY1"),
]
_JSON = ("content-type", "application/json")
_OF_CONNECTIONS = {"connection", "keep-alive", "proxy-connection", "upgrade", "te", "content-length"}


def asks(
    manifests: Sequence[Manifest], seed: int, callers: int, requests: int, slow: float = 0
) -> Iterator[GatewayAsk]:
    """Yield for some callers a few requests at each port. Most of them match a route.

    `slow`: the share of requests whose authorizer times out.
    """
    random = Random(seed)  # noqa: S311 - it chooses what to test
    routes = [each["spec"] for each in manifests if each["kind"] in ("HTTPRoute", "GRPCRoute")]
    schemes = [scheme for each in manifests for scheme in each["spec"].get("authSchemes", ())]
    hosts = [name for route in routes for name in route.get("hostnames", _HOSTS)]
    hosts += [name for scheme in schemes for name in scheme["hosts"] * 2 if name != "*"]
    named = [name.replace("*", "x") for name in hosts] or _HOSTS
    matches = [match for route in routes for rule in route["rules"] for match in rule.get("matches", [{}])]
    for port in (*PLAIN, *HTTPS):
        every = CALLERS["HTTPS" if port in HTTPS else "HTTP"]
        for caller in random.sample(every, min(callers, len(every))):
            hosts = [random.choice(named), random.choice(named), random.choice(_HOSTS)]
            for _ in range(requests):
                ask = _ask(random, caller, port, random.choice(hosts))
                ask = _fitted(random, ask, random.choice(matches)) if random.random() < 0.5 else ask
                yield _slowed(random, ask) if random.random() < slow else ask


def _slowed(random: Random, ask: GatewayAsk) -> GatewayAsk:
    """Return the same request with an authorizer that times out."""
    which = random.choice([GRPC_HEADER, HTTP_HEADER])
    headers = tuple((name, SLOW if name == which else value) for name, value in ask.http.headers)
    return replace(ask, http=replace(ask.http, headers=headers))


def _fitted(random: Random, ask: GatewayAsk, match: Manifest) -> GatewayAsk:
    """Return the same request with the attributes of a route's match, except the method."""
    headers = [(each["name"], each["value"]) for each in match.get("headers", ()) if random.random() < 0.9]
    parameters = [f"{each['name']}={each['value']}" for each in match.get("queryParams", ())]
    path = match.get("path", {"value": "/mcp", "type": "Exact"})
    target = ask.http.target
    if path["type"] != "RegularExpression" and not (ask.header("content-type") or "").endswith("grpc"):
        target = path["value"].rstrip("/") + random.choice(["", "", "/x"]) or "/"
    if parameters:
        target = target.partition("?")[0].partition("#")[0] + "?" + "&".join(parameters)
    return replace(ask, http=replace(ask.http, target=target, headers=(*ask.http.headers, *headers)))


def _ask(random: Random, caller: Caller, port: int, host: str) -> GatewayAsk:
    sni = host if port in HTTPS else None
    draw = random.random()
    if draw < 0.06:
        host = random.choice(_HOSTS)  # may differ from the name in the handshake
    elif draw < 0.12:
        host = random.choice(_SPELLED_HOSTS)
    elif draw < 0.14:
        host = odd_hosts(random)
    path = random.choice(_PATHS) if random.random() < 0.93 else odd_targets(random)
    version = HTTP_2 if random.random() < 0.35 else HTTP_1_1
    chosen = _headers(random)
    if version == HTTP_2:
        chosen = [each for each in chosen if each[0].lower() not in _OF_CONNECTIONS]
    kind = random.choices(["message", "batch", "call", "stream", "plain", "odd"], [12, 2, 1, 3, 4, 2])[0]
    method, body = "POST", None
    match kind:
        case "message" | "batch":
            body = _written(random, kind)
            chosen = [*chosen, _JSON, ("accept", "application/json, text/event-stream"), *_session(random, 0.2)]
        case "call":
            path, body = f"/{random.choice(['a.B', 'c', 'd'])}/{random.choice(['Get', 'Put'])}", b"\0\0\0\0\0"
            chosen = [*chosen, ("content-type", "application/grpc")]
        case "stream":
            method = random.choice(["GET", "DELETE"])
            chosen = [*chosen, ("accept", "text/event-stream"), *_session(random, 0.8)]
        case "plain":
            method = random.choice(["GET", "GET", "HEAD", "PUT", "DELETE", "POST", "OPTIONS"])
        case "odd":
            body = _odd_body(random)
            content_type = random.choice(["application/json", "text/plain", "application/json; charset=utf-8"])
            chosen = [*chosen, ("content-type", content_type)]
    return GatewayAsk(caller, port, sni, Http(method, path, host, tuple(chosen), version), body)


def _headers(random: Random) -> list[tuple[str, str]]:
    words = [*STATUSES, "allow", "allow"]
    chosen = [(GRPC_HEADER, random.choice(words)), (HTTP_HEADER, random.choice(words))]
    if random.random() < 0.4:
        chosen.append(random.choice([("k", "v"), ("k", "w"), ("x-a", "1"), ("k", "vw")]))
    if random.random() < 0.1:
        chosen += [("k", "v"), ("x-a", "2")]
    if random.random() < 0.5:
        chosen.append(random.choice(_CREDENTIALS))
    if random.random() < 0.05:
        chosen += [each for each in odd_headers(random) if each[0].lower() not in _OF_CONNECTIONS]
    return chosen


def _session(random: Random, share: float) -> list[tuple[str, str]]:
    if random.random() > share:
        return []
    return [("mcp-session-id", random.choice([OWN_SESSION, OWN_SESSION, OWN_SESSION, FOREIGN_SESSION, "odd"]))]


def _message(random: Random) -> dict[str, Any]:
    method = random.choice(_METHODS)
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if not method.startswith("notifications/") and random.random() < 0.95:
        message["id"] = random.choice([1, "one", 2**40, "ü"])
    if method in ("tools/call", "prompts/get", "resources/read", "Tools/Call"):
        member = "uri" if method == "resources/read" else "name"
        message["params"] = {member: random.choice(_TOOLS), "arguments": {"name": "del"}}
    elif random.random() < 0.3:
        message["params"] = {"protocolVersion": "2025-06-18", "_meta": {}}
    return message


def _written(random: Random, kind: str) -> bytes:
    if kind == "batch":
        return json.dumps([_message(random) for _ in range(random.randint(1, 3))]).encode()
    if random.random() < 0.05:
        return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode()
    return json.dumps(_message(random), ensure_ascii=random.random() < 0.5).encode()


def _odd_body(random: Random) -> bytes:
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add"}}'
    return random.choice(
        [
            call,
            b"",
            b"not JSON",
            call.replace(b'"name":"add"', b'"name":"add","name":"del"'),
            call.replace(b'"add"', b'"\\u0061dd"'),
            call.replace(b'"method":', b'"Method":"ping","method":'),
            call + b" {}",
            b"[]",
            b"\xef\xbb\xbf" + call,
            call.replace(b'"2.0"', b"2.0"),
        ]
    )
