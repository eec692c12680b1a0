"""`-n`, `-k` and `--exclude` mean the same on every command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\n"
POLICY = """\
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: p}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: web}}}]
  action: ALLOW
  rules: [{authorizationSource: {serviceAccounts: [shop/front]}}]
"""
ASK = ("--from", "sa:shop/front", "--to", "pod:web", "--port", "80")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    (tmp_path / "m/all.yaml").write_text(f"{POD}---\n{POLICY}")
    return tmp_path


def test_the_namespace_is_that_of_what_does_not_say_its_own(cli: Cli) -> None:
    result = cli("check", "-f", "m", "-n", "shop", *ASK, "-o", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["policy"] == "AuthorizationPolicy/shop/p"
    assert cli("check", "-f", "m", *ASK, "-o", "json").exit_code == 0
    assert cli("check", "-f", "m", "-n", "shop", *ASK[:3], "pod:default/web").exit_code == 2
    assert cli("check", "-f", "m", "--set", "namespace=shop", *ASK).exit_code == 0
    assert cli("check", "-f", "m", "-n", "Shop", *ASK).exit_code == 2


def test_a_namespace_that_is_written_stays(cli: Cli, folder: Path) -> None:
    (folder / "m/all.yaml").write_text(POD.replace("name: web,", "name: web, namespace: own,"))
    assert cli("check", "-f", "m", "-n", "shop", *ASK[:2], "--to", "pod:own/web").exit_code == 0
    assert cli("check", "-f", "m", "-n", "shop", *ASK[:2], "--to", "pod:web").exit_code == 2


def test_every_command_takes_it(cli: Cli) -> None:
    assert "shop" in cli("get", "workloads", "-n", "shop", "-f", "m").stdout
    assert "Namespace:        shop" in cli("describe", "pod", "web", "-n", "shop", "-f", "m").stdout
    assert cli("lint", "-f", "m", "-n", "shop", "-o", "json").exit_code in (0, 1)
    assert cli("explain", "-f", "m", "-n", "shop", *ASK).exit_code == 0
    converted = cli("convert", "--to", "authorizationpolicy-v1alpha1", "-f", "m", "-n", "shop")
    assert converted.exit_code in (0, 1)


def test_tables_have_it_as_a_setting(cli: Cli, folder: Path) -> None:
    (folder / "t.yaml").write_text("""\
apiVersion: eastgate.dev/v1alpha1
kind: DecisionTest
metadata: {name: t}
spec:
  manifests: [m]
  settings: {namespace: shop}
  cases:
  - {from: sa:shop/front, to: pod:web, port: 80, expect: allow, by: AuthorizationPolicy/shop/p}
  - {from: sa:shop/other, to: pod:shop/web, port: 80, expect: deny}
""")
    assert cli("test", "t.yaml").exit_code == 0


def test_an_account_is_named_with_its_namespace_or_that_of_the_command(cli: Cli) -> None:
    result = cli("check", "-f", "m", "--from", "sa:front", "--to", "pod:shop/web")
    assert (result.exit_code, "write sa:<namespace>/<name>" in result.stderr) == (2, True)
    assert cli("check", "-f", "m", "-n", "shop", "--from", "sa:front", "--to", "pod:web").exit_code == 0


def test_what_is_left_out_is_counted(cli: Cli, folder: Path) -> None:
    (folder / "m/drafts").mkdir()
    (folder / "m/drafts/broken.yaml").write_text(f"{POLICY}bad: [\n")
    assert cli("check", "-f", "m", *ASK).exit_code == 2
    for command in (("check", *ASK), ("explain", *ASK), ("get", "workloads"), ("describe", "pod", "web")):
        result = cli(*command, "-f", "m", "--exclude", "drafts/", "-v")
        assert result.exit_code == 0
        assert "left out 1 file" in result.stderr
    assert json.loads(cli("lint", "-f", "m", "--exclude", "drafts/", "-o", "json").stdout)["excluded"] == 1
    assert "left out 1 file" in cli("lint", "-f", "m", "--exclude", "drafts/").stdout
    (folder / "m/.eastgateignore").write_text("drafts/\n")
    assert "left out 1 file" in cli("lint", "-f", "m").stdout


@pytest.mark.real
def test_a_kustomization_is_rendered(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "m/kustomization.yaml").write_text("resources: [all.yaml]\n")
    program = folder / "bin/kustomize"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nprint('''{POD.replace('name: web', 'name: made')}''')\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    for option in ("-f", "-k"):
        assert cli("get", "workloads", option, "m", "-o", "name").stdout == "pod/made\n"
    assert cli("check", "-k", "m", *ASK[:2], "--to", "pod:made").exit_code == 0
    assert "EG1042" in cli("check", "-k", "bin", *ASK).stderr


def test_nothing_on_standard_input_is_an_error(cli: Cli) -> None:
    result = cli("lint", "-f", "-", stdin="")
    assert (result.exit_code, "there is nothing in standard input" in result.stdout) == (2, True)
    assert cli("check", "-f", "-", *ASK, stdin="\n").exit_code == 2
