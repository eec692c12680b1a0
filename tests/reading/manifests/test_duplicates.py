"""The same object twice in a folder: copies that agree in all fields that Eastgate reads are one object."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.authority.reading import read_manifests
from tests.reading.manifests.test_folders import POD, codes_in, folder_of


@pytest.mark.parametrize(
    ("second", "codes"),
    [
        (POD, []),
        (POD + "spec: {containers: [{name: c, image: other}]}\n", []),
        (POD.replace("name: a", "name: a, labels: {x: z}"), ["EG1036"]),
        (POD + "spec: {serviceAccountName: other}\n", ["EG1036"]),
    ],
)
def test_an_object_may_be_written_twice_if_all_read_fields_are_equal(
    second: str, codes: list[str], tmp_path: Path
) -> None:
    assert codes_in(folder_of(tmp_path, {"a.yaml": POD, "b.yaml": second})) == codes


@pytest.mark.parametrize(
    ("second", "codes"),
    [
        ("annotations: {net.beta.kubernetes.io/network-policy: closed}", []),
        ("annotations: {kubernetes.io/description: shop}", []),
        ("annotations: {config.linkerd.io/default-inbound-policy: deny}", ["EG1036"]),
        ("labels: {team: a}", ["EG1036"]),
    ],
)
def test_a_namespace_may_be_written_twice_for_annotations_of_kubernetes(
    second: str, codes: list[str], tmp_path: Path
) -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    other = namespace.replace("name: shop", f"name: shop, {second}")
    assert codes_in(folder_of(tmp_path, {"a.yaml": namespace, "b.yaml": other})) == codes


def _config_map(name: str, data: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: istio-system}}\ndata: {data}\n"


@pytest.mark.parametrize(
    ("first", "second", "codes"),
    [
        (_config_map("app", "{a: b}"), _config_map("app", "{a: c}"), []),
        (_config_map("istio", "{mesh: 'a: b'}"), _config_map("istio", "{mesh: 'a: b', other: x}"), []),
        (_config_map("istio", "{mesh: 'a: b'}"), _config_map("istio", "{mesh: 'a: c'}"), ["EG1036"]),
        (_config_map("istio", "{mesh: 'a: b'}"), _config_map("istio", "{}"), ["EG1036"]),
    ],
)
def test_of_config_maps_only_the_settings_of_a_mesh_are_compared(
    first: str, second: str, codes: list[str], tmp_path: Path
) -> None:
    assert codes_in(folder_of(tmp_path, {"a.yaml": first, "b.yaml": second})) == codes


_NETWORK_POLICY = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: p, labels: {a: b}, annotations: {c: d}}
spec: {podSelector: {}}
"""


@pytest.mark.parametrize(
    ("first", "second", "codes"),
    [
        ("", "", []),
        ("a: b", "a: c", []),  # labels of the policy itself
        ("c: d", "c: e", []),  # annotations
        ("c: d", "eastgate.dev/mode: audit", ["EG1036"]),
        ("podSelector: {}", "podSelector: {matchLabels: {x: y}}", ["EG1036"]),
        ("podSelector: {}", "podSelector: {}, ingress: []", ["EG1036"]),
    ],
)
def test_a_policy_may_be_written_twice_if_both_say_the_same(
    first: str, second: str, codes: list[str], tmp_path: Path
) -> None:
    again = _NETWORK_POLICY.replace(first, second) if first else _NETWORK_POLICY
    assert codes_in(folder_of(tmp_path, {"a.yaml": _NETWORK_POLICY, "b.yaml": again})) == codes


_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, labels: {x: y}}
spec:
  replicas: 1
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}, annotations: {checksum/config: abc}}
    spec:
      serviceAccountName: a
      containers: [{name: c, image: one, env: [{name: X, value: y}], ports: [{containerPort: 80}]}]
"""


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [
        ("replicas: 1", "replicas: 2", None),
        ("image: one", "image: two", None),
        ("value: y", "value: z", None),
        ("{x: y}", "{x: z}", None),
        ("config: abc", "config: def", None),
        ("containerPort: 80", "containerPort: 81", "`spec.template.spec.containers[0].ports[0].containerPort`"),
        ("labels: {app: a}", "labels: {app: a, b: c}", "`spec.template.metadata.labels.b`"),
        ("serviceAccountName: a", "serviceAccountName: b", "`spec.template.spec.serviceAccountName`"),
        ("checksum/config", "sidecar.istio.io/inject", "annotations.sidecar.istio.io/inject`"),
    ],
)
def test_of_a_deployment_that_is_written_twice_the_fields_that_decide_are_compared(
    first: str, second: str, field: str | None, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, {"a.yaml": _DEPLOYMENT, "b.yaml": _DEPLOYMENT.replace(first, second)})
    found = read_manifests([folder]).reporter.diagnostics
    assert [field is not None and field in each.message for each in found] == ([] if field is None else [True])
    for each in found:
        assert each.span is not None
        assert each.span.file == str(folder / "b.yaml")
        assert f"the first one is at {folder / 'a.yaml'}" in (each.help or "")


@pytest.mark.parametrize("name", ["${NAME}", "web-${NAME}", "{{ .Release.Name }}"])
def test_objects_with_placeholder_names_are_different_objects(name: str, tmp_path: Path) -> None:
    one, other = (POD.replace("name: a", f"name: '{name}', labels: {{x: {label}}}") for label in "bc")
    assert codes_in(folder_of(tmp_path, {"a.yaml": one, "b.yaml": other})) == ["EG1052", "EG1052"]
