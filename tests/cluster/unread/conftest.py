"""A small shop, and the answers about it with further manifests in the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eastgate.cli import main

WORLD = """\
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart, tier: back}}
spec: {serviceAccountName: cart, containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {serviceAccountName: web, containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: bank, namespace: pay, labels: {app: bank}}
spec: {serviceAccountName: bank, containers: [{name: c, image: i, ports: [{containerPort: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {selector: {app: cart}, ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: front, namespace: shop}
spec: {gatewayClassName: any, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart, namespace: shop}
spec: {parentRefs: [{name: front}], rules: [{backendRefs: [{name: cart, port: 80}]}]}
"""
WEB_TO_CART = ("--from", "sa:shop/web", "--to", "pod:shop/cart", "--port", "80")
BANK_TO_CART = ("--from", "sa:pay/bank", "--to", "pod:shop/cart", "--port", "80")
TO_GATEWAY = ("--from", "sa:shop/web", "--to", "gateway:shop/front", "--method", "GET", "--path", "/", "--host", "x")

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the world and some more manifests, in `more.yaml`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "world.yaml").write_text(WORLD)

    def command(more: str, verb: str, *words: str) -> Result:
        (tmp_path / "more.yaml").write_text(more)
        return CliRunner().invoke(main, [verb, "-f", "world.yaml", "-f", "more.yaml", *words], catch_exceptions=False)

    return command
