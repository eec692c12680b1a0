"""Every secret and every extension config that Eastgate writes has another spelling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from envoy.config.core.v3 import extension_pb2
from google.protobuf.any_pb2 import Any

from eastgate import load
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.enforcement import Enforcement
from eastgate.control.fleet import SiteChange, everything
from eastgate.control.gateway_nodes import ports_of_gateway
from eastgate.control.gateways import GatewaySite
from eastgate.control.sites import ProxySite, ports_of
from eastgate.envoy.config.client_certificates import certificate_secret, client_ca_secret, trust_secret
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.server.resources import CLUSTER, EXTENSION, VALIDATED_ONCE, XdsResource
from eastgate.envoy.server.respelling import respell
from eastgate.envoy.server.store import Store

_EXAMPLES = Path(__file__).parents[3] / "examples"


def _published(example: str) -> Iterator[XdsResource]:
    """Yield the resources for the proxies of an example, sidecars and gateways."""
    authority = load(_EXAMPLES / example / "manifests")
    world, sites, gateways = authority.world, {}, {}
    for key, workload in world.workloads.items():
        ports = {port: port for port in ports_of(world, workload)}
        sites[key] = ProxySite(key, "127.0.0.1", ports, dict.fromkeys(ports, SocketAddress("/app")))
    for key, gateway in world.gateways.items():
        ports = {port: port for port in ports_of_gateway(world, gateway)}
        gateways[f"gateway:{key}"] = GatewaySite(GatewayNamed(gateway.namespace, gateway.name), "127.0.0.1", ports)
    enforcement = Enforcement(authority, Store())
    enforcement.follow(SiteChange(sites, gateways), everything(world))
    for node in enforcement.nodes:
        yield from (each for each in enforcement.store.resources(node) if each.type_url in VALIDATED_ONCE)


def _kind(resource: XdsResource) -> str:
    packed: Any = extension_pb2.TypedExtensionConfig.FromString(resource.body).typed_config
    return packed.TypeName()


def test_every_extension_config_can_be_spelled_in_another_way() -> None:
    published = [resource for example in ("shop", "agents") for resource in _published(example)]
    assert {_kind(resource).removeprefix("envoy.extensions.filters.") for resource in published} == {
        "http.lua.v3.Lua",
        "http.rbac.v3.RBAC",
        "http.set_filter_state.v3.Config",
        "network.rbac.v3.RBAC",
    }
    for resource in published:
        spellings = {resource.body, respell(resource), respell(resource)}
        assert len(spellings) == 3
        assert {_kind(resource.spelled(body)) for body in spellings} == {_kind(resource)}


@pytest.mark.parametrize(
    "secret",
    [certificate_secret("svid", b"chain", b"key"), client_ca_secret("ca", b"roots"), trust_secret({"a": b"roots"})],
    ids=lambda secret: secret.name,
)
def test_every_secret_can_be_spelled_in_another_way(secret: XdsResource) -> None:
    spelled = secret.spelled(respell(secret))
    assert (spelled.key, spelled.version) == (secret.key, secret.version)
    assert len({secret.body, spelled.body, respell(secret)}) == 3


@pytest.mark.parametrize("resource", [XdsResource(CLUSTER, "a", b""), XdsResource(EXTENSION, "a", b"")])
def test_what_has_no_other_spelling_is_an_error(resource: XdsResource) -> None:
    with pytest.raises(ValueError, match=r"validated whenever|no other spelling"):
        respell(resource)
