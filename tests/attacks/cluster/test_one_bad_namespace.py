"""One namespace that rejects writes must not keep the CA from all other namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from eastgate.control.identity import EmbeddedCa
from eastgate.controller.certificates.shared_ca import write_config_maps
from eastgate.reading.kubernetes import ApiError, JsonObject, Resource


class Api:
    """An API server with a namespace whose deletion never ends."""

    def __init__(self) -> None:
        self.written: dict[str, Any] = {}

    async def get(self, _resource: Resource, _name: str, namespace: str) -> JsonObject:
        if namespace not in self.written:
            raise ApiError(404, "NotFound", "not found")
        return {"data": {**self.written[namespace], "mine": "too"}}

    async def apply(self, _resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
        namespace = obj["metadata"]["namespace"]
        if namespace == "aaa":
            raise ApiError(403, "Forbidden", "it is being terminated")
        assert namespace not in self.written, "written again"
        self.written[namespace] = obj["data"]
        return dict(obj)


def test_the_others_get_the_ca() -> None:
    async def run() -> set[str]:
        api, bundles = Api(), EmbeddedCa("cluster.local").bundles
        for _ in range(2):
            await write_config_maps(api, ["shop", "aaa", "web"], bundles)
        return set(api.written)

    assert asyncio.run(run()) == {"shop", "web"}
