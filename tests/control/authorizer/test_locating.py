"""The destination of a request: from the configuration of the operator, or from an unambiguous host and address."""

from __future__ import annotations

from functools import partial
from io import BytesIO

import pytest

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.reading import read_manifests
from eastgate.cluster import World
from eastgate.cluster.ends import Gateway, parse_destination
from eastgate.control.authorizer.checks import ProxyCheck
from eastgate.control.authorizer.locating import GatewaysByHost, UnknownDestinationError, destinations_of, port_of
from eastgate.settings import Settings

MANIFESTS = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: one, namespace: prod}
spec: {gatewayClassName: x, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: two, namespace: prod}
spec:
  gatewayClassName: x
  listeners:
  - {name: a, port: 80, protocol: HTTP, hostname: "*.two.example"}
  - {name: b, port: 8080, protocol: HTTP, hostname: "*.two.example"}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: one, namespace: prod}
spec:
  parentRefs: [{name: one}]
  hostnames: [one.example, both.two.example]
  rules: [{backendRefs: [{name: x, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: two, namespace: prod}
spec: {parentRefs: [{name: two}], rules: [{backendRefs: [{name: x, port: 80}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop}
spec: {containers: [{name: app}]}
status: {podIP: 10.0.0.5}
"""


@pytest.fixture(scope="module")
def world() -> World:
    return Authority(read_manifests(["-"], Settings(), stdin=BytesIO(MANIFESTS.encode()))).world


def located(check: ProxyCheck, world: World, default: str | None = None) -> tuple[str, ...]:
    gateways = GatewaysByHost()
    configured = parse_destination(default) if default is not None else None
    found = destinations_of(check, configured, world, lambda host: gateways.find(host, world, 1))
    return tuple(map(str, found))


POD = ("10.0.0.5", 8080)


@pytest.mark.parametrize(
    ("check", "default", "destinations"),
    [
        (ProxyCheck(to="pod:a/b", host="one.example"), "gateway:c/d", ("pod:a/b",)),
        (ProxyCheck(host="one.example"), "gateway:c/d", ("gateway:c/d",)),
        (ProxyCheck(host="one.example"), None, ("gateway:prod/one",)),
        (ProxyCheck(host="ONE.example.:8443"), None, ("gateway:prod/one",)),
        (ProxyCheck(host="a.two.example"), None, ("gateway:prod/two",)),
        (ProxyCheck(host="both.two.example"), None, None),
        (ProxyCheck(host="both.two.example", destination=POD), None, None),
        (ProxyCheck(host="other.example"), None, None),
        (ProxyCheck(host="other.example", destination=POD), None, ("pod:shop/cart",)),
        (ProxyCheck(host="one.example", destination=POD), None, ("gateway:prod/one", "pod:shop/cart")),
        (ProxyCheck(destination=POD), None, ("pod:shop/cart",)),
        (ProxyCheck(destination=("10.0.0.6", 80)), None, None),
        (ProxyCheck(), None, None),
    ],
)
def test_destinations(
    check: ProxyCheck, default: str | None, destinations: tuple[str, ...] | None, world: World
) -> None:
    if destinations is None:
        with pytest.raises(UnknownDestinationError):
            located(check, world, default)
    else:
        assert located(check, world, default) == destinations


@pytest.mark.parametrize(
    ("check", "to", "port"),
    [
        (ProxyCheck(port=9), "gateway:prod/two", 9),
        (ProxyCheck(destination=POD), "pod:shop/cart", 8080),
        (ProxyCheck(), "pod:shop/cart", None),
        (ProxyCheck(destination=POD), "gateway:prod/one", 80),
        (ProxyCheck(), "gateway:prod/one", 80),
        (ProxyCheck(destination=POD), "gateway:prod/two", 8080),
        (ProxyCheck(destination=("10.0.0.9", 10_000)), "gateway:prod/two", None),
        (ProxyCheck(destination=POD), "service:shop/cart", None),
        (ProxyCheck(), "gateway:prod/none", None),
    ],
)
def test_ports(check: ProxyCheck, to: str, port: int | None, world: World) -> None:
    assert port_of(check, parse_destination(to), world) == port


def test_gateways_are_cached_until_a_change(world: World) -> None:
    gateways = GatewaysByHost()
    assert gateways.find("one.example", world, 1) == (Gateway("prod", "one"),)
    assert gateways.find("one.example", World(), 1) == (Gateway("prod", "one"),)
    assert gateways.find("one.example", World(), 2) == ()


AUTH_CONFIGS = """
---
apiVersion: authorino.kuadrant.io/v1beta3
kind: AuthConfig
metadata: {name: a, namespace: prod}
spec: {hosts: [one.example, talker.example, "*.talker.example"], authentication: {anybody: {anonymous: {}}}}
"""
NAMED = {"host": "any key"}


@pytest.mark.parametrize(
    ("check", "default", "destinations"),
    [
        (ProxyCheck(host="talker.example:80"), None, ("host:talker.example:80",)),
        (ProxyCheck(host="nobody.example"), None, ("host:nobody.example",)),  # which is not found
        (ProxyCheck(host="talker.example", to="pod:a/b", extensions=NAMED), None, ("pod:a/b",)),
        (ProxyCheck(host="talker.example", extensions=NAMED), "pod:a/b", ("host:any key",)),
        (ProxyCheck(host="talker.example"), "pod:a/b", ("pod:a/b",)),
        (ProxyCheck(host="one.example"), None, ("host:one.example", "gateway:prod/one")),
        (ProxyCheck(host="One.example."), None, ("host:One.example.", "gateway:prod/one")),  # in any spelling
        (ProxyCheck(host="a.two.example"), None, ("gateway:prod/two",)),
        (ProxyCheck(host="talker.example", destination=POD), None, ("host:talker.example", "pod:shop/cart")),
        (ProxyCheck(host="both.two.example"), None, None),
        (ProxyCheck(), None, None),
    ],
)
def test_destinations_where_auth_configs_are_for_hosts(
    check: ProxyCheck, default: str | None, destinations: tuple[str, ...] | None
) -> None:
    manifests = (MANIFESTS + AUTH_CONFIGS).encode()
    authority = Authority(read_manifests(["-"], Settings(), stdin=BytesIO(manifests)))
    gateways = GatewaysByHost()

    def locate() -> tuple[str, ...]:
        world = authority.world
        configured = parse_destination(default) if default is not None else None
        find = partial(gateways.find, world=world, version=1)
        return tuple(map(str, destinations_of(check, configured, world, find, programs_of(authority))))

    if destinations is None:
        with pytest.raises(UnknownDestinationError):
            locate()
    else:
        assert locate() == destinations


def test_the_extension_host_means_nothing_where_there_is_no_auth_config(world: World) -> None:
    assert located(ProxyCheck(host="one.example", extensions=NAMED), world) == ("gateway:prod/one",)
