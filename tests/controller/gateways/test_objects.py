"""The objects of a Gateway."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from eastgate.control.gateways import gateway_identity
from eastgate.controller.gateways.objects import AddressError, gateway_objects, requested_address
from eastgate.controller.gateways.parameters import GatewayParameters, ParameterError
from eastgate.controller.gateways.pods import ProxySetup, labels_of, object_name, selector_of
from eastgate.settings import Settings
from tests.controller.gateways.manifests import gateway, world_of

SETUP = ProxySetup({"node": {"cluster": "eastgate"}, "price": "$(HOME) costs $5"}, {"token.json": {"resources": []}})
DEFAULTS = GatewayParameters("envoy:v1")


def _objects(obj: dict[str, Any], ports: tuple[int, ...] = (80,), **parameters: Any) -> dict[str, dict[str, Any]]:
    made = gateway_objects(obj, ports, SETUP, replace(DEFAULTS, **parameters))
    return {entry["kind"]: entry for entry in made}


def _expanded(argument: str, variables: dict[str, str]) -> str:
    """Expand an argument like a kubelet."""
    parts = argument.split("$$")
    for name, value in variables.items():
        parts = [part.replace(f"$({name})", value) for part in parts]
    return "$".join(parts)


def test_an_account_comes_before_the_pods_that_have_its_identity() -> None:
    made = gateway_objects(gateway(), {80}, SETUP, DEFAULTS)
    assert [entry["kind"] for entry in made] == ["ServiceAccount", "Service", "Deployment", "PodDisruptionBudget"]


def test_the_account_is_that_of_the_identity_of_the_gateway() -> None:
    obj = gateway("edge.v1")
    world, _ = world_of([obj])
    objects = _objects(obj)
    account = objects["ServiceAccount"]["metadata"]
    identity = gateway_identity(world.gateways["edge/edge.v1"], Settings())
    assert identity.endswith(f"/ns/{account['namespace']}/sa/{account['name']}")
    assert objects["Deployment"]["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]


@pytest.mark.parametrize("name", ["gw", "a.b", "9", "x" * 54, "x" * 55, "x" * 253, "a.b" + "x" * 200])
def test_every_name_of_a_gateway_gives_names_and_labels_that_the_api_server_takes(name: str) -> None:
    made = object_name(name)
    assert len(made) <= 63
    assert made[0].isalpha()
    assert made.replace("-", "").isalnum()
    assert all(len(value) <= 63 for value in labels_of(name).values())


def test_names_that_are_cut_stay_different() -> None:
    names = ["x" * 100, "x" * 101, "a.b", "a-b"]
    assert len({object_name(name) for name in names}) == len(names)
    assert len({selector_of(name)["eastgate.dev/gateway"] for name in names}) == len(names)


def test_everything_belongs_to_the_gateway() -> None:
    for entry in _objects(gateway(), max_replicas=3).values():
        (owner,) = entry["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Gateway", "gw", "uid-of-gw")
        assert owner["controller"]
        assert owner["blockOwnerDeletion"]
        assert entry["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "eastgate"


def test_the_pod_may_do_nothing_that_it_need_not() -> None:
    spec = _objects(gateway())["Deployment"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert (spec["securityContext"]["runAsNonRoot"], spec["securityContext"]["runAsUser"]) == (True, 1337)
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    confined = container["securityContext"]
    assert confined["capabilities"] == {"drop": ["ALL"]}
    assert (confined["readOnlyRootFilesystem"], confined["allowPrivilegeEscalation"]) == (True, False)
    assert container["resources"]["requests"] == {"cpu": "100m", "memory": "128Mi"}
    (token,) = (volume for volume in spec["volumes"] if volume["name"] == "token")
    assert token["projected"]["sources"][0]["serviceAccountToken"]["audience"] == "eastgate"


def test_the_arguments_hold_the_bootstrap_as_it_is_and_the_name_of_the_pod() -> None:
    (container,) = _objects(gateway())["Deployment"]["spec"]["template"]["spec"]["containers"]
    arguments = [_expanded(argument, {"POD_NAME": "gw-1", "HOME": "/root"}) for argument in container["args"]]
    assert json.loads(arguments[arguments.index("--config-yaml") + 1]) == SETUP.bootstrap
    assert arguments[arguments.index("--service-node") + 1] == "gateway:edge/gw/gw-1"


def test_the_files_of_the_pod_come_from_its_annotations() -> None:
    template = _objects(gateway())["Deployment"]["spec"]["template"]
    assert template["metadata"]["annotations"] == {"eastgate.dev/source-token.json": '{"resources":[]}'}
    [sources] = [each for each in template["spec"]["volumes"] if each["name"] == "sources"]
    [item] = sources["downwardAPI"]["items"]
    assert item["fieldRef"]["fieldPath"] == "metadata.annotations['eastgate.dev/source-token.json']"


def test_a_rolling_update_lets_connections_end() -> None:
    spec = _objects(gateway(), drain_seconds=30)["Deployment"]["spec"]
    pod = spec["template"]["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert pod["containers"][0]["lifecycle"] == {"preStop": {"sleep": {"seconds": 30}}}
    assert pod["terminationGracePeriodSeconds"] > 30


def test_the_service_has_each_port_once_and_selects_the_pods() -> None:
    objects = _objects(gateway(), ports=(443, 80))
    service = objects["Service"]["spec"]
    assert [(port["port"], port["targetPort"]) for port in service["ports"]] == [(80, 80), (443, 443)]
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= labels.items()
    assert service["type"] == "LoadBalancer"


def test_without_ports_there_is_no_service() -> None:
    assert "Service" not in _objects(gateway(), ports=())


def test_pods_of_gateways_are_not_injected() -> None:
    template = _objects(gateway())["Deployment"]["spec"]["template"]
    assert template["metadata"]["labels"]["eastgate.dev/inject"] == "false"


def test_labels_and_annotations_of_the_infrastructure_are_on_everything() -> None:
    infrastructure = {"labels": {"team": "edge"}, "annotations": {"example.com/a": "b"}}
    objects = _objects(gateway(infrastructure=infrastructure))
    for metadata in (
        *(entry["metadata"] for entry in objects.values()),
        objects["Deployment"]["spec"]["template"]["metadata"],
    ):
        assert metadata["labels"]["team"] == "edge"
        assert metadata["annotations"]["example.com/a"] == "b"


@pytest.mark.parametrize("key", ["eastgate.dev/gateway", "eastgate.dev/inject", "app.kubernetes.io/managed-by"])
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_the_infrastructure_may_not_set_reserved_keys(field: str, key: str) -> None:
    with pytest.raises(ParameterError, match=key):
        _objects(gateway(infrastructure={field: {key: "x"}}))


def test_an_autoscaler_sets_the_number_of_pods() -> None:
    objects = _objects(gateway(), replicas=2, max_replicas=5)
    assert "replicas" not in objects["Deployment"]["spec"]
    scaler = objects["HorizontalPodAutoscaler"]["spec"]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (2, 5)
    assert "HorizontalPodAutoscaler" not in _objects(gateway())
    assert _objects(gateway())["Deployment"]["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("addresses", "address"),
    [
        ([], None),
        ([{"type": "IPAddress"}], None),
        ([{"value": "192.0.2.1"}], "192.0.2.1"),
        ([{"type": "IPAddress", "value": "2001:DB8::1"}], "2001:db8::1"),
    ],
)
def test_the_address_that_a_gateway_asks_for(addresses: list[dict[str, str]], address: str | None) -> None:
    assert requested_address(gateway(addresses=addresses)) == address


@pytest.mark.parametrize(
    "addresses",
    [
        [{"type": "Hostname", "value": "example.com"}],
        [{"type": "example.com/x", "value": "y"}],
        [{"value": "192.0.2.1"}, {"value": "192.0.2.2"}],
        [{"value": "no address"}],
    ],
)
def test_an_address_that_cannot_be_had(addresses: list[dict[str, str]]) -> None:
    with pytest.raises(AddressError):
        _objects(gateway(addresses=addresses))


@pytest.mark.parametrize(("type_", "field"), [("LoadBalancer", "loadBalancerIP"), ("ClusterIP", "clusterIP")])
def test_the_service_asks_for_the_address(type_: str, field: str) -> None:
    obj = gateway(addresses=[{"value": "192.0.2.1"}])
    assert _objects(obj, service_type=type_)["Service"]["spec"][field] == "192.0.2.1"
