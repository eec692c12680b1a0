"""Pods that try to act as their own proxy, or to receive traffic around it."""

from __future__ import annotations

from typing import Any

import pytest
from envoy.config.listener.v3 import listener_pb2

from eastgate.controller.injection import InjectionOptions, InjectionRefused, inject, warnings_of
from eastgate.envoy.config.capture import CapturedOutbound, capture_resource, outbound_capture_resources
from eastgate.envoy.config.inbound_port import ANY_PORT, Capture, InboundPort
from eastgate.envoy.config.probes import probe_listener


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "web", "image": "web"}], **spec},
    }


def projected(audience: str) -> dict[str, Any]:
    return {"name": "mine", "projected": {"sources": [{"serviceAccountToken": {"audience": audience, "path": "t"}}]}}


def test_a_token_for_the_control_plane_is_the_proxys_alone() -> None:
    with pytest.raises(InjectionRefused, match="token for the control plane"):
        inject(pod(volumes=[projected("eastgate")]), InjectionOptions())
    assert inject(pod(volumes=[projected("vault")]), InjectionOptions()) is not None


@pytest.mark.parametrize("shared", ["shareProcessNamespace", "hostPID"])
def test_shared_processes_are_warned_of(shared: str) -> None:
    assert any("keys" in warning for warning in warnings_of(pod(**{shared: True})))


def test_no_other_process_can_listen_where_connections_are_redirected_to() -> None:
    """With SO_REUSEPORT, a process of the proxy's user could listen there, and get connections around all policies."""
    inbound = InboundPort("shop/web", "10.0.0.1", ANY_PORT, ANY_PORT, capture=Capture(("10.0.0.1", "fd00::1"), ()))
    resources = [capture_resource(inbound), *outbound_capture_resources(("10.0.0.1",), CapturedOutbound())]
    listeners = {resource.name: resource.body for resource in resources if resource.name in ("capture", "outbound")}
    assert set(listeners) == {"capture", "outbound"}
    for body in listeners.values():
        listener = listener_pb2.Listener.FromString(body)
        assert listener.HasField("enable_reuse_port")
        assert not listener.enable_reuse_port.value
    assert probe_listener([], "10.0.0.1")["enable_reuse_port"] is False
