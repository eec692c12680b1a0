"""Hostile clients of the control plane: the identities that they claim, and the messages that they send.

The attacker has the token of its own node, `mine`, and wants the resources of `theirs`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from random import Random
from typing import Any

from envoy.config.core.v3.base_pb2 import Node
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest

from eastgate.envoy.server import CLUSTER, EXTENSION, LISTENER, ROUTE, SECRET

__all__ = ["METHODS", "MINE", "THEIRS", "Metadata", "impostors", "messages", "random_messages"]

MINE, THEIRS = "mine", "theirs"
Metadata = tuple[tuple[str, str | bytes], ...]

# Other methods that a gRPC server may serve. None is needed, and each would need access control
METHODS = [
    *(
        f"/envoy.service.{service}"
        for service in (
            "discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources",
            "listener.v3.ListenerDiscoveryService/DeltaListeners",
            "listener.v3.ListenerDiscoveryService/StreamListeners",
            "cluster.v3.ClusterDiscoveryService/DeltaClusters",
            "route.v3.RouteDiscoveryService/DeltaRoutes",
            "secret.v3.SecretDiscoveryService/DeltaSecrets",
            "secret.v3.SecretDiscoveryService/StreamSecrets",
            "extension.v3.ExtensionConfigDiscoveryService/DeltaExtensionConfigs",
            "status.v3.ClientStatusDiscoveryService/StreamClientStatus",
            "load_stats.v3.LoadReportingService/StreamLoadStats",
        )
    ),
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/grpc.health.v1.Health/Watch",
    "/grpc.channelz.v1.Channelz/GetServers",
    "/SpiffeWorkloadAPI/FetchX509SVID",
    "/envoy.service.discovery.v3.aggregateddiscoveryservice/deltaaggregatedresources",
    "//envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources/",
]


def impostors(mine: str, theirs: str, revoked: str) -> Iterator[tuple[str, str, Metadata]]:
    """Yield false identities, by name: the node, and metadata. `theirs` is used for tokens that are nearly right."""

    def bearer(token: str, scheme: str = "Bearer ") -> Metadata:
        return (("authorization", f"{scheme}{token}"),)

    yield "no token", THEIRS, ()
    yield "an empty token", THEIRS, bearer("")
    for node in (
        THEIRS,
        "",
        "unknown",
        f"{THEIRS} ",
        f" {THEIRS}",
        THEIRS.upper(),
        f"{MINE}/{THEIRS}",
        f"{THEIRS}\0",
        "*",
        "../theirs",
        f"{THEIRS},{MINE}",
    ):
        yield f"the own token for {node!r}", node, bearer(mine)
    yield "a token that was revoked", THEIRS, bearer(revoked)
    for name, token in {
        "cut at the end": theirs[:-1],
        "cut at the beginning": theirs[1:],
        "with a letter more": f"{theirs}x",
        "in capitals": theirs.upper() if theirs.upper() != theirs else theirs.lower(),
        "twice": f"{theirs}{theirs}",
        "with a NUL": f"{theirs[:5]}%00",
        "as its hash": hashlib.sha256(theirs.encode()).hexdigest(),
        "as its hash in base64": base64.b64encode(hashlib.sha256(theirs.encode()).digest()).decode(),
        "in base64": base64.b64encode(theirs.encode()).decode(),
        "reversed": theirs[::-1],
        "of another": f"{mine},{theirs[:-1]}",
        "a wildcard": "*",
        "null": "null",
        "true": "true",
        "very long": "x" * 7000,
    }.items():
        yield f"their token, {name}", THEIRS, bearer(token)
    for scheme in ("Basic ", "Token ", "", "Bearer", "Bearer:", "Bearer,", "bearer\tx ", "Digest "):
        yield (
            f"their token as {scheme!r}",
            THEIRS,
            bearer(theirs, scheme) if scheme.strip() != "Bearer" else bearer(theirs[:-1], scheme),
        )
    for header in ("x-authorization", "cookie", "token", "x-token", "proxy-authorization", "authorization-bin"):
        value: str | bytes = theirs.encode() if header.endswith("-bin") else f"Bearer {theirs}"
        yield f"their token in {header}", THEIRS, ((header, value),)
    yield "two headers, the own one first", THEIRS, (*bearer(mine), *bearer("x"))
    yield "two headers, the own one last", THEIRS, (*bearer("x"), *bearer(mine))


def _asking(type_url: str, *names: str, **more: Any) -> bytes:
    written: bytes = DeltaDiscoveryRequest(
        type_url=type_url, resource_names_subscribe=names, **more
    ).SerializeToString()
    return written


def messages() -> Iterator[tuple[str, list[bytes]]]:
    """Yield the messages of a connected node on one stream, by name. None may return a resource of `theirs`."""
    own = Node(id=MINE)
    start = _asking(LISTENER, node=own)
    for type_url in (LISTENER, CLUSTER, ROUTE, SECRET, EXTENSION):
        short = type_url.rpartition(".")[2]
        for names in (
            ("*",),
            ("key", "l"),
            (THEIRS,),
            (f"{THEIRS}/key",),
            ("../theirs/key",),
            ("",),
            ("key\0",),
            ("*", "*"),
            ("k*",),
            ("xdstp://theirs/key",),
        ):
            yield f"{short} {names}", [_asking(type_url, *names, node=own)]
        yield (
            f"{short} that it says it has",
            [_asking(type_url, "key", node=own, initial_resource_versions={"key": "1"})],
        )
        yield f"{short} with an unknown nonce", [start, _asking(type_url, "key", response_nonce="1")]
        yield (
            f"{short} given up and asked for",
            [start, _asking(type_url, "key", resource_names_unsubscribe=["*", "key"])],
        )
    for type_url in (
        "",
        "x",
        "type.googleapis.com/",
        "type.googleapis.com/envoy.admin.v3.ConfigDump",
        LISTENER.upper(),
        f"{LISTENER} ",
        f"{SECRET}\0",
    ):
        yield f"type {type_url!r}", [_asking(type_url, "*", node=own)]
    for node in (Node(id=THEIRS), Node(id=""), Node(id=MINE, cluster=THEIRS), Node(id=f"{MINE}\0{THEIRS}")):
        yield f"another node {node.id!r} {node.cluster!r} later", [start, _asking(SECRET, "key", "*", node=node)]
    for data in (
        b"",
        b"\0",
        b"\xff" * 100,
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0a\x05",
        start[:-1],
        start + b"\x0a",
        b"\x12" * 50,
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        yield f"bytes {data[:20]!r}", [start, data]
        yield f"bytes {data[:20]!r} first", [data]
    yield "a thousand names", [_asking(SECRET, *(f"key{number}" for number in range(1000)), node=own)]
    yield "the same again and again", [_asking(SECRET, "key", "*", node=own)] * 200
    yield "all nonces", [start, *(_asking(LISTENER, response_nonce=str(number)) for number in range(100))]
    yield (
        "errors about nothing",
        [
            start,
            *(
                _asking(LISTENER, response_nonce=str(n), error_detail={"code": 3, "message": "x" * 5000})
                for n in range(20)
            ),
        ],
    )


def random_messages(seed: int, number: int) -> Iterator[tuple[str, list[bytes]]]:
    """Yield `number` streams of messages with flipped bits."""
    random = Random(seed)  # noqa: S311 - it chooses what to test
    known = [data for _, sent in messages() for data in sent if data]
    for count in range(number):
        changed = bytearray(random.choice(known))
        for _ in range(random.randint(1, 4)):
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
        yield f"random {seed}/{count}", [_asking(LISTENER, node=Node(id=MINE)), bytes(changed)]
