"""A configuration that a proxy would not accept is found before it is sent."""

from __future__ import annotations

from typing import Any

import pytest
from envoy.config.core.v3 import extension_pb2
from envoy.config.listener.v3 import listener_pb2
from envoy.extensions.filters.http.rbac.v3 import rbac_pb2

from eastgate.envoy.config import listeners
from eastgate.envoy.config.listeners import find_obstacle
from eastgate.envoy.config.packing import pack
from eastgate.envoy.server.resources import EXTENSION, LISTENER, SECRET, XdsResource


def _nested(matcher: Any, depth: int) -> None:
    for _ in range(depth):
        matcher = matcher.on_no_match.matcher
    matcher.on_no_match.action.name = "end"


def _listener(depth: int) -> XdsResource:
    listener = listener_pb2.Listener(name="a")
    _nested(listener.filter_chain_matcher, depth)
    return XdsResource(LISTENER, "a", listener.SerializeToString())


def _rules(depth: int) -> XdsResource:
    rules = rbac_pb2.RBAC()
    _nested(rules.shadow_matcher, depth)
    config = extension_pb2.TypedExtensionConfig(name="a", typed_config=pack(rules))
    return XdsResource(EXTENSION, "a", config.SerializeToString())


@pytest.mark.parametrize("of", [_listener, _rules])
def test_what_is_nested_too_deeply(of: Any) -> None:
    assert find_obstacle(of(40)) is None
    assert "nested too deeply" in (find_obstacle(of(60)) or "")


def test_what_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "LARGEST", 10)
    assert find_obstacle(XdsResource(SECRET, "a", b"1" * 10)) is None
    assert "has 11 bytes" in (find_obstacle(XdsResource(SECRET, "a", b"1" * 11)) or "")
