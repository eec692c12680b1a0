"""The command `convert`: its forms of output, its files and its exit statuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Cli

POLICY = """
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: p, namespace: shop}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: web}}}]
  action: ACTION
  rules: [{authorizationSource: {serviceAccounts: [cart]}}]
"""
ALLOW, DENY = POLICY.replace("ACTION", "ALLOW"), POLICY.replace("ACTION", "DENY")


def test_what_is_converted_can_be_read_again(cli: Cli) -> None:
    result = cli("convert", "--to", "xauthorizationpolicy", "-f", "-", stdin=ALLOW)
    assert result.exit_code == 0
    assert result.stderr == ""
    again = cli("convert", "--to", "authorizationpolicy-v1alpha2", "-f", "-", stdin=result.stdout)
    assert again.exit_code == 0
    spec = yaml.safe_load(again.stdout)["spec"]
    assert spec["rules"] == [{"authorizationSource": {"serviceAccounts": ["shop/cart"]}}]


def test_a_loss_is_reported_with_its_place(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(DENY)
    result = cli("convert", "--to", "xauthorizationpolicy", "-f", "p.yaml")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "warning[EG7003]" in result.stderr
    assert "p.yaml:7:11" in result.stderr
    assert "1 loss; 1 policy is not converted and must stay in force" in result.stderr


def test_json_has_the_losses(cli: Cli) -> None:
    both = f"{ALLOW}---{DENY}".replace("name: p", "name: q", 1)
    result = cli("convert", "--to", "xauthorizationpolicy", "-o", "json", "-f", "-", stdin=both)
    data = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [one["metadata"]["name"] for one in data["converted"]] == ["q"]
    assert [(one["code"], one["underlined"]) for one in data["losses"]] == [("EG7003", "DENY")]
    assert data["notConverted"] == ["AuthorizationPolicy/shop/p"]


@pytest.mark.parametrize("strict", [False, True])
def test_strict_writes_nothing_where_something_is_lost(cli: Cli, tmp_path: Path, strict: bool) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.yaml").write_text(ALLOW)
    (tmp_path / "in" / "b.yaml").write_text(DENY.replace("name: p", "name: q"))
    words = ["convert", "--to", "xauthorizationpolicy", "-f", "in", "--out", "out", *(["--strict"] if strict else [])]
    assert cli(*words).exit_code == 1
    written = sorted(path.name for path in (tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else []
    assert written == ([] if strict else ["a.yaml"])


def test_one_file_for_each_that_was_read(cli: Cli, tmp_path: Path) -> None:
    for folder, name in (("x", "p"), ("y", "q")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.yaml").write_text(ALLOW.replace("name: p", f"name: {name}"))
    assert cli("convert", "--to", "istio", "-f", "x", "-f", "y", "--out", "out").exit_code == 0
    names = {path.name: yaml.safe_load(path.read_text())["metadata"]["name"] for path in (tmp_path / "out").glob("*")}
    assert names == {"a.yaml": "p", "a-2.yaml": "q"}


def test_what_cannot_be_read_is_not_converted(cli: Cli) -> None:
    result = cli("convert", "--to", "istio", "-f", "-", stdin=ALLOW.replace("rules", "rulez"))
    assert result.exit_code == 2
    assert result.stdout == ""


def test_a_policy_without_a_conversion_is_reported(cli: Cli) -> None:
    result = cli("convert", "--to", "accesspolicy-v1alpha1", "-f", "-", stdin=ALLOW)
    assert result.exit_code == 1
    assert "warning[EG7001]" in result.stderr


def test_what_has_the_form_already_stays_as_it_is(cli: Cli) -> None:
    result = cli("convert", "--to", "authorizationpolicy-v1alpha2", "-f", "-", stdin=ALLOW)
    assert yaml.safe_load(result.stdout) == yaml.safe_load(ALLOW)


def test_without_manifests_it_says_how_to_give_them(cli: Cli) -> None:
    result = cli("convert", "--to", "istio")
    assert result.exit_code == 2
    assert "-f" in result.stderr


def test_in_the_root_namespace_of_istio_nothing_is_converted(cli: Cli) -> None:
    text = ALLOW.replace("namespace: shop", "namespace: mesh")
    assert cli("convert", "--to", "istio", "-f", "-", stdin=text).exit_code == 0
    result = cli("convert", "--to", "istio", "--set", "rootNamespace=mesh", "-f", "-", stdin=text)
    assert "EG7102" in result.stderr
    assert result.stdout == ""
