"""Virtual machines of KubeVirt run in pods, and OpenShift's DeploymentConfigs make pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.cluster import ContainerPort, World
from eastgate.manifests import read_manifests

MACHINE = """\
metadata: {labels: {app: db}, annotations: {sidecar.istio.io/inject: "true"}}
spec:
  domain:
    devices:
      interfaces:
      - {name: default, masquerade: {}, ports: [{port: 5432, name: sql}, {port: 53, protocol: UDP}]}
      - {name: second, bridge: {}}
    resources: {requests: {memory: 64M}}
  networks: [{name: default, pod: {}}]
  volumes: [{name: disk, containerDisk: {image: x}}, {name: account, serviceAccount: {serviceAccountName: runner}}]
"""


def _indented(text: str, spaces: int) -> str:
    return "".join(f"{' ' * spaces}{line}\n" for line in text.splitlines())


def _object(api_version: str, kind: str, body: str) -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: db, namespace: shop}}\nspec:\n{body}"


OBJECTS = {
    "VirtualMachine": _object(
        "kubevirt.io/v1", "VirtualMachine", f"  runStrategy: Always\n  template:\n{_indented(MACHINE, 4)}"
    ),
    "VirtualMachineInstanceReplicaSet": _object(
        "kubevirt.io/v1", "VirtualMachineInstanceReplicaSet", f"  template:\n{_indented(MACHINE, 4)}"
    ),
    "VirtualMachinePool": _object(
        "pool.kubevirt.io/v1beta1",
        "VirtualMachinePool",
        f"  virtualMachineTemplate:\n    spec:\n      template:\n{_indented(MACHINE, 8)}",
    ),
    "VirtualMachineInstance": "apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\n"
    + MACHINE.replace("metadata: {", "metadata: {name: db, namespace: shop, "),
}


def _world(tmp_path: Path, text: str) -> World:
    (tmp_path / "m.yaml").write_text(text)
    manifests = read_manifests([tmp_path / "m.yaml"])
    assert manifests.reporter.diagnostics == []
    return World.of(manifests.objects)


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_virtual_machine_runs_in_a_pod(kind: str, tmp_path: Path) -> None:
    workload = _world(tmp_path, OBJECTS[kind]).workloads["shop/db"]
    machine = "db-0" if kind == "VirtualMachinePool" else "db"
    assert workload.labels == {
        "app": "db",
        "kubevirt.io": "virt-launcher",
        "vm.kubevirt.io/name": machine,
        "vmi.kubevirt.io/id": machine,
        "sidecar.istio.io/inject": "true",
    }
    assert workload.service_account == "runner"
    assert workload.ports == (ContainerPort(5432, "sql"), ContainerPort(53, None, "UDP"))
    assert [owner.kind for owner in workload.owners] == [kind]


def test_a_machine_that_says_little_runs_as_default_and_declares_no_port(tmp_path: Path) -> None:
    world = _world(tmp_path, _object("kubevirt.io/v1", "VirtualMachine", "  template: {spec: {domain: {}}}\n"))
    workload = world.workloads["shop/db"]
    assert (workload.service_account, workload.ports) == ("default", ())


def test_the_account_that_a_machine_names_counts_more_than_a_volume(tmp_path: Path) -> None:
    text = OBJECTS["VirtualMachine"].replace("      domain:\n", "      serviceAccountName: named\n      domain:\n")
    assert _world(tmp_path, text).workloads["shop/db"].service_account == "named"


def test_a_machine_its_instance_and_its_pod_are_one_workload(tmp_path: Path) -> None:
    instance = OBJECTS["VirtualMachineInstance"].replace(
        "metadata: {",
        "metadata: {ownerReferences: [{kind: VirtualMachine, apiVersion: kubevirt.io/v1, name: db, "
        "controller: true}], ",
    )
    pod = """\
apiVersion: v1
kind: Pod
metadata:
  name: virt-launcher-db-x1
  namespace: shop
  labels: {app: db}
  ownerReferences: [{kind: VirtualMachineInstance, apiVersion: kubevirt.io/v1, name: db, controller: true}]
spec: {containers: [{name: compute}]}
"""
    machine = OBJECTS["VirtualMachine"]
    assert list(_world(tmp_path, f"{machine}---\n{instance}").workloads) == ["shop/db"]
    for text in (f"{machine}---\n{instance}---\n{pod}", f"{machine}---\n{pod}"):
        [workload] = _world(tmp_path, text).workloads.values()
        assert workload.key == "shop/virt-launcher-db-x1"
        assert [owner.kind for owner in workload.owners] == ["VirtualMachineInstance", "VirtualMachine"]


def test_a_label_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(OBJECTS["VirtualMachine"].replace("app: db", "app: 1"))
    assert [d.code.id for d in read_manifests([tmp_path / "m.yaml"]).reporter.diagnostics] == ["EG1104"]


def test_a_deployment_config_makes_pods(tmp_path: Path) -> None:
    template = "  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c}]}}\n"
    config = _object("apps.openshift.io/v1", "DeploymentConfig", template)
    controller = """\
apiVersion: v1
kind: ReplicationController
metadata:
  name: db-1
  namespace: shop
  ownerReferences: [{kind: DeploymentConfig, apiVersion: apps.openshift.io/v1, name: db, controller: true}]
spec: {template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c}]}}}
"""
    [workload] = _world(tmp_path, f"{config}---\n{controller}").workloads.values()
    assert (workload.key, [owner.kind for owner in workload.owners]) == ("shop/db", ["DeploymentConfig"])
    assert workload.labels == {"app": "db", "deploymentconfig": "db", "deployment": "db-1"}
