"""Objects without a namespace, of any kind, are in that of their environment."""

from __future__ import annotations

from pathlib import Path

from eastgate.authority.reading import read_manifests
from eastgate.cluster import Pod
from eastgate.reading.repository import EntryKind, Environment, Files
from eastgate.settings import Settings


def test_workloads_and_policies_are_in_the_namespace_of_their_part(tmp_path: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: cart}\nspec: {containers: [{name: c, image: c}]}\n"
    policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p}\nspec: {podSelector: {}}\n"
    (tmp_path / "all.yaml").write_text(f"{pod}---\n{policy}")
    part = Files((str(tmp_path / "all.yaml"),), "shop")
    environment = Environment("prod", EntryKind.ARGO, str(tmp_path), str(tmp_path), (part,))
    manifests = read_manifests([environment], Settings())
    assert [str(policy.ref) for policy in manifests.policies] == ["NetworkPolicy/shop/p"]
    assert [each.namespace for each in manifests.objects if isinstance(each, Pod)] == ["shop"]
