"""Eastgate's own proxies compare Linkerd's paths as all others, for all settings."""

from __future__ import annotations

import asyncio
import os

from eastgate import Question
from eastgate.local.calls import make_calls
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.settings import DataPlane, Settings
from tests.local.test_the_pod_itself import reading

ROUTES = """
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: web, labels: {app: web}}
spec: {serviceAccountName: web, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
---
apiVersion: policy.linkerd.io/v1beta3
kind: Server
metadata: {namespace: shop, name: http}
spec: {podSelector: {matchLabels: {app: web}}, port: 8080, proxyProtocol: HTTP/1}
---
apiVersion: policy.linkerd.io/v1beta3
kind: HTTPRoute
metadata: {namespace: shop, name: all}
spec: {parentRefs: [{group: policy.linkerd.io, kind: Server, name: http}], rules: [{matches: [{path: {value: /}}]}]}
---
apiVersion: policy.linkerd.io/v1beta3
kind: HTTPRoute
metadata: {namespace: shop, name: admin}
spec:
  parentRefs: [{group: policy.linkerd.io, kind: Server, name: http}]
  rules: [{matches: [{path: {value: /admin}}]}]
---
apiVersion: policy.linkerd.io/v1alpha1
kind: AuthorizationPolicy
metadata: {namespace: shop, name: all}
spec: {targetRef: {group: policy.linkerd.io, kind: HTTPRoute, name: all}, requiredAuthenticationRefs: []}
"""
SPELT = ["/admin", "//admin", "/./admin", "/x/../admin", "/%61dmin", "/\\admin"]


def test_no_spelling_of_a_path_goes_round_its_route() -> None:
    offline = reading(ROUTES)(Settings())
    asked = [Question.of("sa:shop/guest", "pod:shop/web", port=8080, method="GET", path=path) for path in SPELT]
    assert [offline.decide(one).allowed for one in asked] == [False, True, True, True, True, True]

    async def made() -> list[bool]:
        options = MeshOptions(name=f"t{os.getpid()}-plane")
        async with LocalMesh(reading(ROUTES), Settings(data_plane=DataPlane.NATIVE), options) as mesh:
            found = [call for question in asked for call in await make_calls(mesh, question)]
            assert all(call.agrees for call in found)
            return [call.allowed for call in found]

    assert asyncio.run(made()) == [False] * len(SPELT)
