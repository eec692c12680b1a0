"""What is wrong in Kubernetes data is said, all of it, and where."""

from __future__ import annotations

import pytest

from eastgate.diagnostics import Code
from eastgate.world import codes
from tests.world.manifests import errors

GATEWAY = "gateway.networking.k8s.io/v1"


def pod_with(
    spec: object = None, labels: object = None, status: object = None, owners: object = None
) -> dict[str, object]:
    return {"metadata": {"labels": labels, "ownerReferences": owners}, "spec": spec, "status": status}


def port(**fields: object) -> dict[str, object]:
    return {"containers": [{"ports": [fields]}]}


def service_port(**fields: object) -> dict[str, object]:
    return {"spec": {"ports": [fields]}}


LISTENER = {"name": "a", "protocol": "HTTP"}
PORT = "spec.containers.0.ports.0"
WRONG: list[tuple[str, str, dict[str, object], str, str, str]] = [
    # kind, place, code, message
    ("v1", "Pod", pod_with("x"), "EG1101", "spec", "`spec` is a string; it must be a mapping"),
    ("v1", "Pod", {"metadata": []}, "EG1101", "metadata", "`metadata` is a list"),
    ("v1", "Pod", pod_with(labels=["a"]), "EG1101", "metadata.labels", "is a list; it must be a mapping"),
    ("v1", "Pod", pod_with(labels={"v": 1}), "EG1104", "metadata.labels.v", "`v` in `metadata.labels` is a number"),
    ("v1", "Pod", pod_with(labels={"v": None}), "EG1104", "metadata.labels.v", "is null, not a string"),
    ("v1", "Pod", pod_with({"containers": {}}), "EG1101", "spec.containers", "it must be a list"),
    ("v1", "Pod", pod_with({"containers": ["a"]}), "EG1101", "spec.containers.0", "`spec.containers[0]` is a string"),
    ("v1", "Pod", pod_with(port(containerPort="80")), "EG1101", f"{PORT}.containerPort", "it must be a number"),
    ("v1", "Pod", pod_with(port(containerPort=True)), "EG1101", f"{PORT}.containerPort", "is a boolean"),
    ("v1", "Pod", pod_with(port(containerPort=80.5)), "EG1101", f"{PORT}.containerPort", "it must be a number"),
    ("v1", "Pod", pod_with(port(containerPort=0)), "EG1102", f"{PORT}.containerPort", "port 0 is out of range"),
    ("v1", "Pod", pod_with(port(containerPort=65536)), "EG1102", f"{PORT}.containerPort", "port 65536 is out of range"),
    ("v1", "Pod", pod_with(port(name="a")), "EG1103", PORT, "containerPort` is missing"),
    ("v1", "Pod", pod_with(port(containerPort=1, name=2)), "EG1101", f"{PORT}.name", "it must be a string"),
    ("v1", "Pod", pod_with(port(containerPort=1, protocol="tcp")), "EG1106", f"{PORT}.protocol", "`tcp` is not"),
    ("v1", "Pod", pod_with({"serviceAccountName": 1}), "EG1101", "spec.serviceAccountName", "a string"),
    ("v1", "Pod", pod_with({"serviceAccountName": "a/b"}), "EG1107", "spec.serviceAccountName", "`a/b` is not"),
    ("v1", "Pod", pod_with({"hostNetwork": "yes"}), "EG1101", "spec.hostNetwork", "it must be true or false"),
    ("v1", "Pod", pod_with(status={"podIP": "10.0.0"}), "EG1105", "status.podIP", "`10.0.0` is not an IP address"),
    ("v1", "Pod", pod_with(status={"podIPs": [{"ip": "x"}]}), "EG1105", "status.podIPs.0.ip", "`x` is not an IP"),
    ("v1", "Pod", pod_with(owners=[{"controller": True, "kind": "A"}]), "EG1103", "metadata.ownerReferences.0", "name"),
    ("apps/v1", "Deployment", {"spec": {}}, "EG1103", "spec", "`spec.template` is missing"),
    ("apps/v1", "Deployment", {}, "EG1103", "spec", "`spec.template` is missing"),
    ("apps/v1", "Deployment", {"spec": {"template": 1}}, "EG1101", "spec.template", "it must be a mapping"),
    ("batch/v1", "CronJob", {"spec": {}}, "EG1103", "spec.jobTemplate.spec", "`spec.jobTemplate.spec.template` is"),
    ("v1", "Service", {"spec": {"selector": {"a": True}}}, "EG1104", "spec.selector.a", "is a boolean"),
    ("v1", "Service", service_port(), "EG1103", "spec.ports.0", "`spec.ports[0].port` is missing"),
    ("v1", "Service", service_port(port=1, targetPort="80"), "EG1101", "spec.ports.0.targetPort", "a number"),
    ("v1", "Service", service_port(port=1, targetPort=70000), "EG1102", "spec.ports.0.targetPort", "70000"),
    ("v1", "Service", service_port(port=1, targetPort=[]), "EG1101", "spec.ports.0.targetPort", "a list"),
    ("v1", "Namespace", {"metadata": {"annotations": {"a": {}}}}, "EG1104", "metadata.annotations.a", "a mapping"),
    (GATEWAY, "Gateway", {"spec": {"listeners": [LISTENER]}}, "EG1103", "spec.listeners.0", "port` is missing"),
    (GATEWAY, "HTTPRoute", {"spec": {"hostnames": [1]}}, "EG1101", "spec.hostnames.0", "it must be a string"),
    (GATEWAY, "HTTPRoute", {"spec": {"rules": ["a"]}}, "EG1101", "spec.rules.0", "it must be a mapping"),
    (GATEWAY, "HTTPRoute", {"spec": {"parentRefs": [{}]}}, "EG1103", "spec.parentRefs.0", "name` is missing"),
    (GATEWAY, "ReferenceGrant", {"spec": {"from": [{"kind": "A"}]}}, "EG1103", "spec.from.0", "namespace` is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("api_version", "kind", "data", "code", "place", "said"), WRONG)
def test_what_is_wrong_is_said_at_its_place_and_the_object_left_out(
    api_version: str, kind: str, data: dict[str, object], code: str, place: str, said: str
) -> None:
    (found,) = errors(api_version, kind, "x", None, **data)
    assert found.span is not None
    assert (found.code.id, found.span.underlined) == (code, place)
    assert said in found.message


def test_all_errors_of_an_object_are_reported_at_once() -> None:
    found = errors(
        "v1",
        "Pod",
        "x",
        metadata={"labels": {"a": 1, "b": "ok", "c": False}},
        spec={
            "containers": [{"ports": [{"containerPort": 0}, {"containerPort": "x", "protocol": "ip"}]}],
            "serviceAccountName": [],
        },
    )
    assert sorted(d.code.id for d in found) == ["EG1101", "EG1101", "EG1102", "EG1104", "EG1104", "EG1106"]


@pytest.mark.parametrize(
    ("labels", "help_"),
    [
        ({"v": 1}, 'write `v: "1"`'),
        ({"v": True}, 'write `v: "true"`'),
        ({"v": 1.5}, 'write `v: "1.5"`'),
        ({"v": []}, None),
    ],
)
def test_an_unquoted_label_is_told_how_to_be_quoted(labels: dict[str, object], help_: str | None) -> None:
    (found,) = errors("v1", "Pod", "x", metadata={"labels": labels})
    assert found.help == help_


def test_every_code_has_its_own_number_and_is_provoked_above() -> None:
    catalogue = [code for code in vars(codes).values() if isinstance(code, Code)]
    numbers = {code.id for code in catalogue}
    assert len(numbers) == len(catalogue)
    assert numbers == {code for _, _, _, code, _, _ in WRONG}
    assert all(number.startswith("EG11") for number in numbers)


@pytest.mark.parametrize(
    ("kind", "name", "namespace", "place"),
    [
        ("Pod", "a/b", "c", "metadata.name"),
        ("Pod", "web (Job)", "c", "metadata.name"),
        ("Pod", "", "c", "metadata.name"),
        ("Pod", "a", "b/c", "metadata.namespace"),
        ("Pod", "a", "b.c", "metadata.namespace"),
        ("Namespace", "a.b", None, "metadata.name"),
        ("ServiceAccount", "A", "c", "metadata.name"),
    ],
)
def test_a_name_that_could_read_like_another_is_refused(
    kind: str, name: str, namespace: str | None, place: str
) -> None:
    (found,) = errors("v1", kind, name, namespace)
    assert found.span is not None
    assert (found.code.id, found.span.underlined) == ("EG1107", place)
