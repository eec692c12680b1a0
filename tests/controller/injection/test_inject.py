"""Injection: the changes of a pod, its unchanged parts, and refused pods."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from eastgate.controller.injection import (
    InjectionOptions,
    InjectionRefused,
    eject,
    inject,
    inject_manifest,
    is_wanted,
    json_patch,
    warnings_of,
)
from eastgate.controller.injection.names import PROXY_UID, VOLUMES

Pod = dict[str, Any]
OPTIONS = InjectionOptions()


def pod(**spec: Any) -> Pod:
    container = {
        "name": "cart",
        "image": "cart",
        "ports": [{"name": "http", "containerPort": 8080}],
        "livenessProbe": {"httpGet": {"path": "live?deep=$(X)", "port": "http"}, "periodSeconds": 3},
        "readinessProbe": {"tcpSocket": {"port": 8080}},
        "startupProbe": {"grpc": {"port": 9090, "service": "cart"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "cart", "labels": {"app": "cart"}},
        "spec": {"containers": [container], **spec},
    }


def annotated(**annotations: str) -> Pod:
    made = pod()
    made["metadata"]["annotations"] = {
        f"eastgate.dev/{key.replace('_', '-')}": text for key, text in annotations.items()
    }
    return made


def injected(of: Pod) -> Pod:
    made = inject(of, OPTIONS)
    assert made is not None
    return made


def container(of: Pod, name: str) -> Pod:
    [found] = [c for key in ("initContainers", "containers") for c in of["spec"][key] if c["name"] == name]
    return found  # type: ignore[no-any-return]


def bootstrap(of: Pod) -> Any:
    args = container(of, "eastgate-proxy")["args"]
    text = args[args.index("--config-yaml") + 1]
    return json.loads(text.replace("$(POD_IP)", "192.0.2.1").replace("$$", "$"))


def test_redirection_comes_first_then_the_proxy_then_the_application() -> None:
    made = injected(pod(initContainers=[{"name": "migrate", "image": "migrate"}]))
    assert [c["name"] for c in made["spec"]["initContainers"]] == ["eastgate-redirect", "eastgate-proxy", "migrate"]
    assert container(made, "eastgate-proxy")["restartPolicy"] == "Always"
    assert made["metadata"]["labels"] == {"app": "cart", "eastgate.dev/proxy": "sidecar"}


def test_no_container_of_the_application_mounts_anything_of_the_proxy() -> None:
    made = injected(pod(initContainers=[{"name": "migrate", "image": "migrate"}]))
    others = [container(made, name) for name in ("cart", "migrate")]
    assert all("volumeMounts" not in other for other in others)
    assert {volume["name"] for volume in made["spec"]["volumes"]} == VOLUMES


def test_only_the_redirecting_container_has_capabilities_and_both_are_confined() -> None:
    made = injected(pod())
    redirect, proxy = (container(made, f"eastgate-{name}")["securityContext"] for name in ("redirect", "proxy"))
    assert redirect["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]}
    assert proxy["capabilities"] == {"drop": ["ALL"]}
    assert (proxy["runAsUser"], proxy["runAsNonRoot"]) == (PROXY_UID, True)
    for context in (redirect, proxy):
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_injecting_twice_changes_nothing_and_ejecting_gives_the_pod_back() -> None:
    made = injected(annotated(exclude_inbound_ports="9000"))
    assert inject(made, OPTIONS) is None
    assert eject(made) == annotated(exclude_inbound_ports="9000")


@pytest.mark.parametrize(
    "probes", ["{", "[]", '{"cart": 1}', '{"cart": {"livenessProbe": NaN}}', '{"cart": {}, "cart": {}}', "[" * 5000]
)
def test_changed_original_probes_are_refused(probes: str) -> None:
    made = injected(pod())
    made["metadata"]["annotations"]["eastgate.dev/original-probes"] = probes
    with pytest.raises(InjectionRefused):
        eject(made)


def test_a_forged_sidecar_is_replaced() -> None:
    forged = injected(pod())
    container(forged, "eastgate-proxy")["image"] = "something-else"
    container(forged, "eastgate-redirect")["command"] = ["true"]
    assert inject(forged, OPTIONS) == injected(pod())


def test_probes_go_to_the_proxy_which_makes_the_original_probes() -> None:
    made = injected(pod())
    probes = {field: container(made, "cart")[field] for field in ("livenessProbe", "readinessProbe", "startupProbe")}
    assert {probe["httpGet"]["port"] for probe in probes.values()} == {15021}
    assert probes["livenessProbe"]["periodSeconds"] == 3
    clusters = {cluster["name"]: cluster for cluster in bootstrap(made)["static_resources"]["clusters"]}
    [check] = clusters["/probes/cart/livenessProbe"]["health_checks"]
    assert check["http_health_check"]["path"] == "/live?deep=$(X)"
    assert "tcp_health_check" in clusters["/probes/cart/readinessProbe"]["health_checks"][0]
    assert clusters["/probes/cart/startupProbe"]["health_checks"][0]["grpc_health_check"] == {"service_name": "cart"}
    kept = json.loads(made["metadata"]["annotations"]["eastgate.dev/original-probes"])
    assert kept["cart"]["readinessProbe"] == {"tcpSocket": {"port": 8080}}


def test_a_probe_of_something_else_and_one_that_runs_a_program_stay() -> None:
    made = pod()
    made["spec"]["containers"][0] |= {
        "livenessProbe": {"exec": {"command": ["true"]}},
        "readinessProbe": {"httpGet": {"host": "elsewhere", "port": 80}},
    }
    before = deepcopy(made["spec"]["containers"][0])
    after = container(injected(made), "cart")
    assert after["livenessProbe"] == before["livenessProbe"]
    assert after["readinessProbe"] == before["readinessProbe"]


@pytest.mark.parametrize(
    "spec",
    [
        {"securityContext": {"runAsUser": 1337}},
        {"containers": [{"name": "cart", "securityContext": {"runAsUser": 1337}}]},
        {"initContainers": [{"name": "x", "securityContext": {"runAsUser": 1337}}]},
        {"containers": [{"name": "eastgate-proxy"}]},
        {"initContainers": [{"name": "eastgate-redirect"}]},
        {"containers": [{"name": "cart", "volumeMounts": [{"name": "eastgate-token", "mountPath": "/t"}]}]},
        {"volumes": [{"name": "eastgate-ca", "emptyDir": {}}]},
        {"containers": [{"name": "cart", "ports": [{"containerPort": 15006}]}]},
        {"containers": [{"name": "cart", "livenessProbe": {"httpGet": {"port": "nowhere"}}}]},
        {"containers": "cart"},
    ],
    ids=["pod-uid", "uid", "init-uid", "proxy", "redirect", "mount", "volume", "port", "probe-port", "no-list"],
)
def test_a_pod_whose_sidecar_would_not_enforce_is_refused(spec: Pod) -> None:
    with pytest.raises(InjectionRefused):
        inject(pod(**spec), OPTIONS)


@pytest.mark.parametrize("value", ["http", "0", "65536", "80;81", "-1", "٣"])
def test_an_exclusion_that_is_no_port_is_refused(value: str) -> None:
    with pytest.raises(InjectionRefused):
        inject(annotated(exclude_outbound_ports=value), OPTIONS)


def test_the_rules_of_the_redirection() -> None:
    made = injected(
        annotated(
            exclude_inbound_ports="9000", exclude_outbound_ports="3306", exclude_outbound_ranges="10.1.0.0/16,fd00::/8"
        )
    )
    rules = {entry["name"]: entry["value"] for entry in container(made, "eastgate-redirect")["env"]}
    assert rules["RULES"].splitlines()[7:] == [
        "-A EASTGATE_INBOUND -p tcp --dport 9000 -j RETURN",
        "-A EASTGATE_INBOUND -p tcp --dport 15021 -j RETURN",
        "-A EASTGATE_INBOUND -p tcp -j REDIRECT --to-ports 15006",
        "-A EASTGATE_OUTBOUND -m owner --uid-owner 1337 -j RETURN",
        "-A EASTGATE_OUTBOUND -o lo -j RETURN",
        "-A EASTGATE_OUTBOUND -d 10.1.0.0/16 -j RETURN",
        "-A EASTGATE_OUTBOUND -p tcp --dport 3306 -j RETURN",
        "-A EASTGATE_OUTBOUND -p tcp -j REDIRECT --to-ports 15001",
        "COMMIT",
    ]
    assert "-d fd00::/8 -j RETURN" in rules["RULES_V6"]
    assert "10.1.0.0" not in rules["RULES_V6"]


def test_each_way_past_the_sidecar_is_warned_of() -> None:
    made = annotated(exclude_inbound_ports="9000", exclude_outbound_ports="1", exclude_outbound_ranges="10.0.0.0/8")
    made["spec"] |= {"shareProcessNamespace": True}
    made["spec"]["containers"][0] |= {
        "securityContext": {"privileged": True, "capabilities": {"add": ["CAP_NET_ADMIN"]}},
        "lifecycle": {"preStop": {"httpGet": {"port": 8080}}},
    }
    assert len(warnings_of(made)) == 7
    assert warnings_of(pod()) == ()
    assert warnings_of(injected(pod())) == ()


@pytest.mark.parametrize(
    ("namespace", "labels", "annotations", "wanted"),
    [
        ({}, {}, {}, False),
        ({"eastgate.dev/injection": "enabled"}, {}, {}, True),
        ({"eastgate.dev/injection": "disabled"}, {}, {}, False),
        ({"eastgate.dev/injection": "enabled"}, {"eastgate.dev/inject": "false"}, {}, False),
        ({"eastgate.dev/injection": "enabled"}, {}, {"eastgate.dev/inject": "false"}, False),
        ({}, {"eastgate.dev/inject": "true"}, {}, True),
        ({}, {"eastgate.dev/inject": "true"}, {"eastgate.dev/inject": "false"}, True),
        ({"eastgate.dev/injection": "enabled"}, {"eastgate.dev/inject": "perhaps"}, {}, True),
        ({"eastgate.dev/injection": "enabled"}, {"eastgate.dev/gateway": "edge"}, {}, False),
    ],
)
def test_pods_that_get_a_sidecar(
    namespace: dict[str, str], labels: dict[str, str], annotations: dict[str, str], wanted: bool
) -> None:
    made = pod()
    made["metadata"] |= {"labels": labels, "annotations": annotations}
    assert is_wanted(made, namespace) is wanted
    made["spec"]["hostNetwork"] = True
    assert is_wanted(made, namespace) is False
    assert inject(made, OPTIONS) is None


def test_a_patch_turns_one_object_into_the_other() -> None:
    before, after = pod(), injected(pod())
    patched = deepcopy(before)
    for operation in json_patch(before, after):
        *holders, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        holder = patched
        for key in holders:
            holder = holder[key]
        if operation["op"] == "remove":
            del holder[last]
        else:
            holder[last] = operation["value"]
    assert patched == after
    assert json_patch(after, after) == []


@pytest.mark.parametrize(("kind", "group"), [("Deployment", "apps"), ("CronJob", "batch")])
def test_a_workload_gets_the_sidecar_in_its_template(kind: str, group: str) -> None:
    template = {"metadata": {"labels": {"app": "cart"}}, "spec": pod()["spec"]}
    spec = {"template": template} if kind == "Deployment" else {"jobTemplate": {"spec": {"template": template}}}
    manifest = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "cart"}, "spec": spec}
    made, _ = inject_manifest(manifest, OPTIONS)
    spec = made["spec"] if kind == "Deployment" else made["spec"]["jobTemplate"]["spec"]
    assert [c["name"] for c in spec["template"]["spec"]["initContainers"]] == ["eastgate-redirect", "eastgate-proxy"]
    assert manifest["spec"] != made["spec"]


def test_a_manifest_without_pods_stays_as_it_is() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "cart"}}
    assert inject_manifest(service, OPTIONS) == (service, ())
