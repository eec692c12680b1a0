"""The chart: its generated parts are up to date, and it renders the objects that a cluster should run."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from eastgate._version import __version__
from eastgate.cli.controller import controller as controller_command
from eastgate.controller.admission.configuration import webhook_configurations
from eastgate.controller.options import ListeningPorts
from eastgate.reports.crds import Webhook, definitions
from tests.deploy.charts import (
    CHART,
    MANIFESTS,
    NAMESPACE,
    ROOT,
    Object,
    helm,
    helm_program,
    load_generate,
    of_kind,
    render,
)

_EVERYTHING = {
    "replicas": 3,
    "image": {
        "repository": "registry.example/eastgate",
        "digest": "sha256:" + "0" * 64,
        "pullSecrets": [{"name": "pull"}],
    },
    "settings": {"trustDomain": "shop.example"},
    "native": "linkerd",
    "log": {"verbose": True},
    "admissionPolicies": {"enabled": True, "mode": "ambient"},
    "gateways": {"createClass": True},
    "secrets": {"access": "all"},
    "rbac": {"ownerReferences": True},
    "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "priorityClassName": "system-cluster-critical",
    "tolerations": [{"operator": "Exists"}],
    "webhooks": {"clientCA": {"configMap": "api-servers", "names": ["kube-apiserver"]}},
    "networkPolicy": {
        "metricsFrom": [{"namespaceSelector": {}}],
        "webhooksFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}],
        "extraEgress": [{"ports": [{"port": 9000}]}],
    },
}
_LITTLE: Object = {
    "replicas": 1,
    "crds": {"install": False},
    "webhooks": {"enabled": False},
    "gateways": {"enabled": False},
    "networkPolicy": {"enabled": False},
    "podDisruptionBudget": {"enabled": False},
}


def controller(objects: list[Object]) -> Any:
    (deployment,) = of_kind(objects, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return container


def test_generated_files_are_up_to_date() -> None:
    folder = CHART / "generated"
    present = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert present == load_generate().chart_files(), "run `python deploy/generate.py`"


def test_plain_manifests_equal_the_rendered_chart() -> None:
    present = {path.name: path.read_text() for path in MANIFESTS.iterdir()}
    assert present == load_generate().manifest_files(helm_program()), "run `python deploy/generate.py`"


def test_definitions_are_those_of_the_command() -> None:
    webhook = Webhook(NAMESPACE, "eastgate")
    assert _plain(of_kind(render(), "CustomResourceDefinition")) == _plain(definitions(webhook))
    without = render({"webhooks": {"enabled": False}})
    assert _plain(of_kind(without, "CustomResourceDefinition")) == _plain(definitions())


def _plain(manifests: list[Object]) -> dict[str, Object]:
    return {each["metadata"]["name"]: each["spec"] for each in manifests}


def test_webhooks_are_those_of_the_command_and_have_no_certificates() -> None:
    rendered = {each["kind"]: each["webhooks"] for each in render() if "Webhook" in each["kind"]}
    assert rendered == {
        each["kind"]: each["webhooks"] for each in webhook_configurations(Webhook(NAMESPACE, "eastgate"))
    }
    assert "caBundle" not in yaml.safe_dump(rendered)


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


@pytest.mark.parametrize("values", [{}, _EVERYTHING, _LITTLE], ids=["default", "everything", "little"])
def test_lint_has_no_complaints(values: Object) -> None:
    helm("lint", "--strict", CHART, "--namespace", NAMESPACE, values=values)


def test_another_namespace_is_named_everywhere() -> None:
    text = helm(
        "template", "eastgate", CHART, "--namespace", "elsewhere", values={"admissionPolicies": {"enabled": True}}
    )
    assert NAMESPACE not in text


def test_pods_are_confined() -> None:
    (deployment,) = of_kind(render(), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    container = controller(render())
    assert deployment["spec"]["replicas"] == 2
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_ports_are_those_that_the_program_listens_on() -> None:
    ports = {port["name"]: port["containerPort"] for port in controller(render())["ports"]}
    listening = ListeningPorts()
    opened = {name: getattr(listening, name) for name in listening.__dataclass_fields__}
    assert ports == {name: port for name, port in opened.items() if port is not None}
    (service,) = of_kind(render(), "Service")
    assert {port["name"]: port["port"] for port in service["spec"]["ports"]} == {
        "xds": 15010,
        "authorizer": 15011,
        "tools": 15012,
        "webhooks": 443,
        "http": 8080,
    }


_SET_BY: dict[str, tuple[Object, str]] = {
    "--access-logs": ({"decisions": {"accessLogs": True}}, ""),
    "--assume": ({"assume": ["istio-paths"]}, "istio-paths"),
    "--authorizer-port": ({"ports": {"authorizer": 7001}}, "7001"),
    "--debug-port": ({"ports": {"debug": 7002}}, "7002"),
    "--decision-log": ({"decisions": {"log": "-"}}, "-"),
    "--decision-sample": ({"decisions": {"log": "-", "sample": 0.5}}, "0.5"),
    "--decision-sample-denied": ({"decisions": {"log": "-", "sampleDenied": 0.5}}, "0.5"),
    "--http-port": ({"ports": {"http": 7003}}, "7003"),
    "--lease-duration": ({"leaseDuration": 30}, "30"),
    "--linkerd-status": ({"linkerdStatus": True}, ""),
    "--log-format": ({"log": {"format": "text"}}, "text"),
    "--namespace": ({}, NAMESPACE),
    "--native": ({"native": "istio"}, "istio"),
    "--native-unwritable": ({"native": "istio", "nativeUnwritable": "close"}, "close"),
    "--no-gateway-class": ({"gateways": {"createClass": False}}, ""),
    "--no-gateways": ({"gateways": {"enabled": False}}, ""),
    "--no-webhooks": ({"webhooks": {"enabled": False}}, ""),
    "--peers-port": ({"ports": {"peers": 7004}}, "7004"),
    "--proxy-image": ({"proxyImage": "proxy"}, "proxy"),
    "--set": ({"settings": {"trustDomain": "shop.example"}}, "trustDomain=shop.example"),
    "--svid-port": ({"ports": {"svid": 7005}}, "7005"),
    "--tools-port": ({"ports": {"tools": 7006}}, "7006"),
    "--verbose": ({"log": {"verbose": True}}, ""),
    "--webhook-client-ca": ({"webhooks": {"clientCA": {"configMap": "api-servers"}}}, "/etc/eastgate/webhooks/ca.crt"),
    "--webhook-client-name": ({"webhooks": {"clientCA": {"configMap": "api-servers", "names": ["api"]}}}, "api"),
    "--webhook-port": ({"ports": {"webhooks": 7007}}, "7007"),
    "--xds-port": ({"ports": {"xds": 7008}}, "7008"),
}
"""For each option of the controller, the chart values that set it, and its value then."""

_GIVEN_BY_THE_POD = {
    "--kubeconfig": "the account of the pod",
    "--context": "the account of the pod",
    "--replica": "the name of the pod, by $POD_NAME",
    "--host": "every address of the pod",
    "--config": "`settings` is the same, by --set",
}


def test_every_option_of_the_controller_has_a_value() -> None:
    names = {max(option.opts, key=len) for option in controller_command.params}
    assert names == {*_SET_BY, *_GIVEN_BY_THE_POD}


@pytest.mark.parametrize("option", _SET_BY)
def test_a_value_sets_the_option(option: str) -> None:
    values, given = _SET_BY[option]
    argument = f"{option}={given}" if given else option
    assert argument in controller(render(values))["args"]
    assert not values or argument not in controller(render())["args"]


def test_the_defaults_of_the_chart_are_those_of_the_command() -> None:
    given = controller(render())["args"][1:]
    by_chart = controller_command.make_context("controller", given).params
    by_command = controller_command.make_context("controller", list[str]()).params
    assert by_chart == {**by_command, "proxy_image": f"eastgate:{__version__}"}


def test_other_ports_are_those_of_container_and_service() -> None:
    objects = render({"ports": {"xds": 7008, "svid": 7005}})
    declared = {port["name"]: port["containerPort"] for port in controller(objects)["ports"]}
    (service,) = of_kind(objects, "Service")
    served = {port["name"]: port["port"] for port in service["spec"]["ports"]}
    assert {(ports["xds"], ports["svid"]) for ports in (declared, served)} == {(7008, 7005)}


def test_further_arguments_come_last() -> None:
    given = {"extraArgs": ["--decision-sample=1", "--verbose"]}
    assert controller(render(given))["args"][-2:] == ["--decision-sample=1", "--verbose"]


def test_switches_reach_the_program() -> None:
    assert {"--no-webhooks", "--no-gateways"} < {*controller(render(_LITTLE))["args"]}
    everything = controller(render(_EVERYTHING))
    assert everything["args"][-1] == "--set=trustDomain=shop.example"
    assert everything["image"] == "registry.example/eastgate@sha256:" + "0" * 64
    assert f"--proxy-image={everything['image']}" in everything["args"]
    assert "--webhook-client-ca=/etc/eastgate/webhooks/ca.crt" in everything["args"]
    assert "--webhook-client-name=kube-apiserver" in everything["args"]
    assert {"name": "webhook-client-ca", "mountPath": "/etc/eastgate/webhooks", "readOnly": True} in everything[
        "volumeMounts"
    ]


def test_only_api_servers_reach_the_webhooks_where_their_addresses_are_known() -> None:
    known: Object = {"networkPolicy": {"webhooksFrom": [{"ipBlock": {"cidr": "10.0.0.0/28"}}]}}
    for values, expected in (({}, None), (known, [{"ipBlock": {"cidr": "10.0.0.0/28"}}])):
        (network,) = of_kind(render(values), "NetworkPolicy")
        (rule,) = [each for each in network["spec"]["ingress"] if each["ports"] == [{"port": "webhooks"}]]
        assert rule.get("from") == expected


def test_without_a_feature_there_are_no_rights_for_it() -> None:
    roles = [role for role in of_kind(render(_LITTLE), "ClusterRole") if role["metadata"]["name"] == "eastgate"]
    rules = [rule for role in roles for rule in role["rules"]]
    written = {
        (group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"] if _writes(rule)
    }
    assert not written & {("apps", "deployments"), ("", "services"), ("", "secrets")}
    assert not any(group == "admissionregistration.k8s.io" for rule in rules for group in rule["apiGroups"])
    assert {("", "secrets")}.isdisjoint(
        (group, name) for rule in rules for group in rule["apiGroups"] for name in rule["resources"]
    )


def _writes(rule: Object) -> bool:
    return not {"get", "list", "watch"}.issuperset(rule["verbs"])


def test_secrets_of_others_are_read_only_where_they_are_named() -> None:
    objects = render({"secrets": {"named": {"shop": ["shop-tls"]}}})
    (role,) = (each for each in of_kind(objects, "Role") if each["metadata"]["name"] == "eastgate-secrets")
    assert role["metadata"]["namespace"] == "shop"
    (rule,) = role["rules"]
    assert rule == {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": ["shop-tls"],
        "verbs": ["list", "watch"],
    }


def test_the_class_is_made_where_the_cluster_has_gateway_api() -> None:
    assert of_kind(render(), "GatewayClass") == []
    assert len(of_kind(render(None, "--api-versions", "gateway.networking.k8s.io/v1"), "GatewayClass")) == 1
    assert len(of_kind(render({"gateways": {"createClass": True}}), "GatewayClass")) == 1


@pytest.mark.parametrize(
    "values",
    [{"replica": 3}, {"native": "consul"}, {"image": {"digest": "latest"}}, {"secrets": {"access": "some"}}],
    ids=["unknown", "mesh", "digest", "access"],
)
def test_wrong_values_are_refused(values: Object) -> None:
    assert "values don't meet the specifications" in helm("template", "eastgate", CHART, values=values, fails=True)


def test_the_dashboard_is_that_of_the_repository() -> None:
    source = ROOT / "deploy" / "grafana" / "eastgate.json"
    if not source.exists():
        assert "no generated/dashboard.json" in helm(
            "template", "eastgate", CHART, values={"dashboard": {"enabled": True}}, fails=True
        )
        return
    (dashboard,) = (each for each in of_kind(render({"dashboard": {"enabled": True}}), "ConfigMap"))
    assert json.loads(dashboard["data"]["eastgate.json"]) == json.loads(source.read_text())
