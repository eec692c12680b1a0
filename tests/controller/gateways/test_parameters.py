"""Parameters of Gateways in ConfigMaps."""

from __future__ import annotations

from typing import Any

import pytest

from eastgate.controller.gateways.parameters import (
    GatewayParameters,
    ParameterError,
    read_parameters,
    referenced_config_maps,
)
from tests.controller.gateways.manifests import gateway

DEFAULTS = GatewayParameters("envoy:v1")
PLAIN_CLASS: dict[str, Any] = {"spec": {}}
CLASS = {"spec": {"parametersRef": {"group": "", "kind": "ConfigMap", "name": "all", "namespace": "system"}}}
GATEWAY = gateway(infrastructure={"parametersRef": {"group": "", "kind": "ConfigMap", "name": "own"}})


def test_without_references_there_are_the_defaults() -> None:
    assert read_parameters(PLAIN_CLASS, gateway(), {}, DEFAULTS) == DEFAULTS
    assert referenced_config_maps(PLAIN_CLASS, gateway()) == ()


def test_those_of_the_gateway_count_before_those_of_the_class() -> None:
    config_maps = {"system/all": {"replicas": "5", "image": "envoy:v2"}, "edge/own": {"replicas": "3"}}
    parameters = read_parameters(CLASS, GATEWAY, config_maps, DEFAULTS)
    assert (parameters.replicas, parameters.image) == (3, "envoy:v2")
    assert referenced_config_maps(CLASS, GATEWAY) == ("system/all", "edge/own")


def test_all_keys() -> None:
    data = {
        "image": "mirror.example/envoy@sha256:00",
        "imagePullPolicy": "Always",
        "serviceType": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "loadBalancerClass": "example.com/internal",
        "loadBalancerSourceRanges": "192.0.2.0/24, 2001:db8::/32",
        "replicas": "2",
        "maxReplicas": "4",
        "targetCPUPercent": "70",
        "cpuRequest": "250m",
        "memoryRequest": "256Mi",
        "cpuLimit": "2",
        "memoryLimit": "1.5Gi",
        "concurrency": "4",
        "drainSeconds": "0",
        "logLevel": "debug",
        "priorityClass": "system-cluster-critical",
    }
    assert read_parameters(CLASS, None, {"system/all": data}, DEFAULTS) == GatewayParameters(
        image="mirror.example/envoy@sha256:00",
        image_pull_policy="Always",
        service_type="LoadBalancer",
        external_traffic_policy="Local",
        load_balancer_class="example.com/internal",
        load_balancer_source_ranges=("192.0.2.0/24", "2001:db8::/32"),
        replicas=2,
        max_replicas=4,
        target_cpu_percent=70,
        cpu_request="250m",
        memory_request="256Mi",
        cpu_limit="2",
        memory_limit="1.5Gi",
        concurrency=4,
        drain_seconds=0,
        log_level="debug",
        priority_class="system-cluster-critical",
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"replica": "2"}, "there is no parameter replica"),
        ({"replicas": "0"}, "replicas must be a whole number"),
        ({"replicas": "101"}, "replicas must be"),
        ({"replicas": "²"}, "replicas must be"),
        ({"serviceType": "ExternalName"}, "serviceType must be one of"),
        ({"cpuRequest": "a lot"}, "cpuRequest must be a quantity"),
        ({"cpuRequest": "1\n2"}, "cpuRequest must be a quantity"),
        ({"loadBalancerSourceRanges": ""}, "must name a network"),
        ({"loadBalancerSourceRanges": "192.0.2.1/24"}, "must be networks"),
        ({"image": "evil image"}, "image must be"),
        ({"replicas": "5", "maxReplicas": "4"}, "maxReplicas is 4"),
        ({"serviceType": "ClusterIP", "loadBalancerClass": "a"}, "has no load balancer"),
        ({"serviceType": "ClusterIP", "externalTrafficPolicy": "Local"}, "has no externalTrafficPolicy"),
    ],
)
def test_parameters_that_cannot_be_used(data: dict[str, str], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        read_parameters(CLASS, None, {"system/all": data}, DEFAULTS)


@pytest.mark.parametrize("key", ["image", "imagePullPolicy", "priorityClass"])
def test_a_gateway_cannot_choose_the_image(key: str) -> None:
    with pytest.raises(ParameterError, match="of GatewayClasses only"):
        read_parameters(PLAIN_CLASS, GATEWAY, {"edge/own": {key: "Always"}}, DEFAULTS)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ({"group": "", "kind": "Secret", "name": "x", "namespace": "system"}, "must name a ConfigMap"),
        ({"group": "example.com", "kind": "ConfigMap", "name": "x", "namespace": "system"}, "must name a ConfigMap"),
        ({"group": "", "kind": "ConfigMap", "name": "x"}, "needs the namespace"),
        ({"group": "", "kind": "ConfigMap", "name": "x", "namespace": "system"}, "there is no ConfigMap system/x"),
    ],
)
def test_references_that_lead_nowhere(reference: dict[str, str], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        read_parameters({"spec": {"parametersRef": reference}}, None, {}, DEFAULTS)
