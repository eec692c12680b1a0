"""A proxy with the observed behaviour of Envoy, including its flaws, without a network.

It rejects a response with anything bad in it, and may have applied any part of the rest by then. After a reconnect, it
claims the versions from before the rejected response. It does not validate an extension or a secret that it has seen
before, and accepts it, even after a rejection. It acknowledges the removal of a secret, and keeps it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest, DeltaDiscoveryResponse

from eastgate.envoy.server.resources import CLUSTER, LISTENER, SECRET, VALIDATED_ONCE, ResourceKey, XdsResource
from eastgate.envoy.server.streams import Acknowledgement, Stream, encode

BAD = b"bad"
_SPELLINGS = itertools.count(1)


def respelled(resource: XdsResource) -> bytes:
    """Another spelling, which means the same to a `FakeProxy`."""
    return b"%b~%d" % (resource.body, next(_SPELLINGS))


def meaning(body: bytes) -> bytes:
    return body.partition(b"~")[0]


def resource(type_url: str, name: str, body: str, *policies: str) -> XdsResource:
    return XdsResource(type_url, name, body.encode(), frozenset(policies))


def request(type_url: str, *names: str, **fields: Any) -> Any:
    return DeltaDiscoveryRequest(type_url=type_url, resource_names_subscribe=names, **fields)


def answer(response: Any, error: str | None = None) -> Any:
    made = DeltaDiscoveryRequest(type_url=response.type_url, response_nonce=response.nonce)
    if error is not None:
        made.error_detail.code = 3
        made.error_detail.message = error
    return made


def send(stream: Stream) -> Any | None:
    """The next response for the proxy."""
    response = stream.next_response()
    return DeltaDiscoveryResponse.FromString(encode(response)) if response is not None else None


def content(response: Any) -> tuple[dict[str, bytes], list[str]]:
    return {one.name: one.resource.value for one in response.resources}, list(response.removed_resources)


def exchange(stream: Stream, *requests: Any) -> list[tuple[str, dict[str, bytes], list[str]]]:
    """Send these requests, accept all responses, and return them."""
    for one in requests:
        stream.receive(one)
    seen = []
    while (response := send(stream)) is not None:
        seen.append((response.type_url, *content(response)))
        stream.receive(answer(response))
    return seen


class FakeProxy:
    """`runs` is the really enforced configuration, `versions` the claimed one."""

    def __init__(self) -> None:
        self.runs: dict[ResourceKey, bytes] = {}
        self.versions: dict[ResourceKey, str] = {}
        self.names: dict[str, set[str]] = {}
        self.rejections = 0
        self._seen: dict[ResourceKey, bytes] = {}

    def restart(self) -> None:
        """A new process: it has nothing, and has seen nothing."""
        self.runs.clear()
        self.versions.clear()
        self._seen.clear()

    def hello(self, types: Sequence[str]) -> list[Any]:
        """The first requests of a new stream."""
        return [
            request(
                type_url,
                *sorted(self.names.get(type_url, ())),
                initial_resource_versions={name: v for (t, name), v in self.versions.items() if t == type_url},
            )
            for type_url in types
            if type_url in (CLUSTER, LISTENER) or self.names.get(type_url)
        ]

    def drop(self, key: ResourceKey) -> None:
        self.runs.pop(key, None)
        self.versions.pop(key, None)
        self._seen.pop(key, None)

    def take(self, response: Any, partly: Callable[[Sequence[str]], Sequence[str]]) -> Any:
        """Apply a response, all of it or the part that `partly` picks, and answer it."""
        added, removed = content(response)
        asked = self.names.get(response.type_url)
        added = {name: body for name, body in added.items() if asked is None or name in asked}
        if response.type_url in VALIDATED_ONCE:
            added = {name: body for name, body in added.items() if self._seen.get((response.type_url, name)) != body}
        bad = sorted(name for name, body in added.items() if body.startswith(BAD))
        gone = [] if response.type_url == SECRET else removed
        good = sorted((added.keys() | set(gone)) - set(bad))
        for name in gone:
            self._seen.pop((response.type_url, name), None)
        self._seen.update({(response.type_url, name): body for name, body in added.items()})
        for name in partly(good) if bad else good:
            if name in added:
                self.runs[response.type_url, name] = meaning(added[name])
            else:
                self.runs.pop((response.type_url, name), None)
        if bad:
            self.rejections += 1
            return answer(response, f"no good: {bad[0]}")
        for one in response.resources:
            if asked is None or one.name in asked:
                self.versions[response.type_url, one.name] = one.version
        for name in removed:
            self.versions.pop((response.type_url, name), None)
        return answer(response)


def rejected_names(found: Acknowledgement | None) -> list[str]:
    return [name for name, _ in found.rejected] if found is not None else []
