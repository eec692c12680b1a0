"""Outbound connections of a workload: its application uses the sidecar as an HTTP proxy, with its identity."""

from __future__ import annotations

import asyncio
import itertools
import json
import os

import pytest

from eastgate import Authority, dialects
from eastgate.authority.reading import sort_documents
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.sidecar import OUTBOUND_PORT
from eastgate.local.machine.connection import Called, HttpRequest, Target
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reading.manifests.reader import read_text
from eastgate.settings import Settings
from tests.local.machine.calling import call

MANIFESTS = """
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: cart, labels: {app: cart}}
spec:
  serviceAccountName: cart
  containers: [{name: c, image: c, ports: [{containerPort: 8080}, {containerPort: 9090}]}]
---
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: web}
spec: {serviceAccountName: web, containers: [{name: c, image: c}]}
---
apiVersion: v1
kind: Pod
metadata: {namespace: other, name: probe}
spec: {containers: [{name: c, image: c}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: cart}
spec: {selector: {app: cart}, ports: [{name: http, port: 80, targetPort: 8080}, {name: metrics, port: 9090}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {namespace: shop, name: web-reads}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: cart}}}]
  action: ALLOW
  enforcementLevel: APPLICATION
  rules: [{authorizationSource: {serviceAccounts: [web]}, applicationAttributes: {paths: [/items]}}]
"""
_NUMBERS = itertools.count()


def read(settings: Settings) -> Authority:
    reading = read_text("manifests.yaml", MANIFESTS, positioned=dialects.reads)
    return Authority(sort_documents(reading.documents, settings, reading.reporter), settings)


@pytest.mark.parametrize(
    ("workload", "url", "status"),
    [
        ("shop/web", "http://cart/items", 200),
        ("shop/web", "http://cart.shop/items", 200),
        ("shop/web", "http://cart.shop.svc.cluster.local:80/items", 200),
        ("shop/web", "http://cart.shop:9090/items", 200),
        ("shop/web", "http://cart.shop/admin", 403),
        ("shop/web", "http://nobody.shop/items", 404),
        ("shop/web", "http://cart.shop:81/items", 404),
        ("other/probe", "http://cart.shop/items", 403),
        ("other/probe", "http://cart/items", 404),
    ],
)
def test_an_application_calls_services_by_their_names(workload: str, url: str, status: int) -> None:
    async def run() -> Called:
        name = f"t{os.getpid()}-outbound-{next(_NUMBERS)}"
        options = MeshOptions(name=name, apps={workload: SocketAddress("127.0.0.1", 1)})
        async with LocalMesh(read, options=options) as mesh:
            site = mesh.sites[workload]
            host = url.split("/")[2]
            request = HttpRequest("GET", url, (("host", host),))
            return await call(Target(site.address, OUTBOUND_PORT), source_address=site.address, request=request)

    called = asyncio.run(run())
    assert called.status == status
    if status == 200:
        assert json.loads(called.body)["workload"] == "shop/cart"


def test_a_workload_without_an_application_of_the_user_has_no_outbound_listener() -> None:
    async def run() -> Called:
        async with LocalMesh(read, options=MeshOptions(name=f"t{os.getpid()}-no-outbound")) as mesh:
            site = mesh.sites["shop/web"]
            return await call(Target(site.address, OUTBOUND_PORT), request=HttpRequest("GET", "http://cart.shop/items"))

    called = asyncio.run(run())
    assert (called.status, called.error) == (0, "refused")
