"""Kustomizations are built and never read as plain manifests. Nothing is fetched and no other program runs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from eastgate.authority.reading import Manifests, read_manifests
from eastgate.reading.manifests import Bounds, Kustomized, rendering
from eastgate.reading.manifests.rendering import ProgramOutput, run
from tests.missing import give_up
from tests.programs import find
from tests.programs.building import are_missing
from tests.reading.repository.programs import stand_in

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\n"
POLICY = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: shop}
spec: {podSelector: {}, policyTypes: [Ingress]}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder whose kustomizations a stand-in builds."""
    programs = tmp_path / "bin"
    programs.mkdir()
    stand_in(monkeypatch, programs)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _pod(name: str) -> str:
    return POD.replace("NAME", name)


def _kustomization(*resources: str, more: str = "") -> str:
    return "resources:\n" + "".join(f"- {one}\n" for one in resources) + more


def _names(manifests: Manifests) -> list[str]:
    return sorted(one.name for one in manifests.objects)


def _codes(manifests: Manifests) -> list[str]:
    return [one.code.id for one in manifests.reporter]


@pytest.mark.parametrize("way", [str, Kustomized])
def test_a_kustomization_is_built_and_not_read(way: type[str] | type[Kustomized], here: Path) -> None:
    _write(here / "m", {"kustomization.yaml": _kustomization("pod.yaml", more="namePrefix: my-\n")})
    _write(here / "m", {"pod.yaml": _pod("base")})
    manifests = read_manifests([way("m")])
    assert (_names(manifests), _codes(manifests)) == (["my-base"], [])
    assert manifests.objects[0].span is not None
    assert "m/pod.yaml" in str(manifests.objects[0].span)


def test_builds_are_kept(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("EASTGATE_CACHE", raising=False)
    _write(here / "m", {"kustomization.yaml": _kustomization("pod.yaml"), "pod.yaml": _pod("a")})
    ran = stand_in(monkeypatch, here / "bin")
    for path in (Kustomized("m"), "m", Kustomized("m")):
        assert _names(read_manifests([path])) == ["a"]
    assert ran == ["kustomize"]


def test_an_included_kustomization_is_not_built_alone(here: Path) -> None:
    _write(
        here / "m",
        {
            "base/kustomization.yaml": _kustomization("pod.yaml"),
            "base/pod.yaml": _pod("base"),
            "overlay/kustomization.yaml": _kustomization("../base", more="namePrefix: my-\n"),
            "plain/pod.yaml": _pod("plain"),
        },
    )
    manifests = read_manifests(["m"])
    assert (_names(manifests), _codes(manifests)) == (["my-base", "plain"], [])


def test_overlays_are_read_together_without_a_choice(here: Path) -> None:
    _write(here / "m", {"base/kustomization.yaml": _kustomization("pod.yaml"), "base/pod.yaml": _pod("base")})
    for name in ("dev", "prod"):
        _write(here / "m", {f"{name}/kustomization.yaml": _kustomization("../base", more=f"namePrefix: {name}-\n")})
    assert _names(read_manifests(["m"])) == ["dev-base", "prod-base"]
    assert _names(read_manifests([Kustomized("m/prod")])) == ["prod-base"]
    assert _names(read_manifests([Kustomized("m/prod"), Kustomized("m/dev")])) == ["dev-base", "prod-base"]
    excluded = read_manifests(["m"], bounds=Bounds.of(["m"], exclude=["dev"]))
    assert (_names(excluded), excluded.excluded) == (["prod-base"], 1)


def test_overlays_that_are_read_together_must_not_differ(here: Path) -> None:
    for name, label in (("dev", "back"), ("prod", "front")):
        labelled = _pod("web").replace("name: web", f"name: web, labels: {{tier: {label}}}")
        _write(here / "m", {f"{name}/kustomization.yaml": _kustomization("pod.yaml"), f"{name}/pod.yaml": labelled})
    (finding,) = read_manifests(["m"]).reporter.errors
    assert (finding.code.id, finding.message.startswith("Pod `web` is written twice")) == ("EG1036", True)


@pytest.mark.parametrize("kind", ["Kustomization", "Component"])
def test_policies_and_workloads_that_nothing_deploys_are_named(kind: str, here: Path) -> None:
    files = {"policy.yaml": POLICY, "sub/other.yaml": _pod("other"), "settings.yaml": "apiVersion: v1\nkind: Secret\n"}
    resources = _kustomization("pod.yaml") if kind == "Kustomization" else _kustomization("policy.yaml")
    _write(here / "m", {"kustomization.yaml": f"{resources}kind: {kind}\n", "pod.yaml": _pod("a"), **files})
    findings = read_manifests(["m"]).reporter.diagnostics
    assert {(finding.code.id, finding.is_error) for finding in findings} == {("EG1044", False)}
    named = {"NetworkPolicy shop/closed", "Pod other"} | ({"Pod a"} if kind == "Component" else set())
    assert {finding.message.removeprefix("no environment has ") for finding in findings} == named


def test_only_an_including_kustomization_hides_another(here: Path) -> None:
    other = _kustomization("pod.yaml", more="namePrefix: ../b\n")
    _write(here / "m", {"a/kustomization.yaml": other, "a/pod.yaml": _pod("x")})
    _write(here / "m", {"b/kustomization.yaml": _kustomization("pod.yaml"), "b/pod.yaml": _pod("b")})
    assert "b" in _names(read_manifests(["m"]))


@pytest.mark.parametrize("way", [str, Kustomized])
def test_remote_parts_are_left_out(way: type[str] | type[Kustomized], here: Path) -> None:
    _write(here / "m", {"kustomization.yaml": _kustomization("https://example.com/x.yaml", "pod.yaml")})
    _write(here / "m", {"pod.yaml": _pod("a")})
    manifests = read_manifests([way("m")])
    (left,) = manifests.unbuilt
    assert (left.what, left.where) == ("`https://example.com/x.yaml` of resources", "m/kustomization.yaml:2")
    assert _names(manifests) == ["a"]


@pytest.mark.parametrize(
    ("address", "can_decide"),
    [
        ("https://example.com/releases/download/v1/cert-manager.crds.yaml", False),
        ("github.com/kubernetes-sigs/gateway-api/config/crd?ref=v1.0", False),
        ("github.com/kubernetes-sigs/gateway-api//config/crd/experimental?ref=v1.0", False),
        ("https://example.com/owner/repo/main/deploy/crds/example.com_things.yaml", False),
        ("https://example.com/owner/repo/main/config/crd/bases/example.com_things.yaml", False),
        ("https://example.com/crd-things.yml", False),
        ("https://example.com/install.yaml", True),
        ("github.com/fluxcd/flux2/manifests/install?ref=main", True),
        ("https://example.com/operator-with-crds.yaml", True),
        ("https://example.com/crds-and-policies.yaml", True),
        ("https://example.com/crds/network-policy.yaml", True),
        ("https://example.com/crds/policies/deny.yaml", True),
        ("https://example.com/deny.yaml?ref=crds", True),
        ("https://example.com/deny.yaml#crds.yaml", True),
        ("github.com/owner/crds-of-things//deploy?ref=v1", True),
    ],
)
def test_definitions_that_would_be_fetched_decide_nothing(address: str, can_decide: bool, here: Path) -> None:
    _write(here / "m", {"kustomization.yaml": _kustomization(f"'{address}'", "pod.yaml"), "pod.yaml": _pod("a")})
    (left,) = read_manifests(["m"]).unbuilt
    assert left.can_decide is can_decide


def test_a_transformer_that_would_be_fetched_may_change_anything(here: Path) -> None:
    more = "transformers: ['https://example.com/crds.yaml']\n"
    _write(here / "m", {"kustomization.yaml": _kustomization("pod.yaml", more=more), "pod.yaml": _pod("a")})
    (left,) = read_manifests(["m"]).unbuilt
    assert left.can_decide


def test_a_base_outside_of_the_repository_is_not_read(here: Path) -> None:
    _write(here, {"base/kustomization.yaml": _kustomization("pod.yaml"), "base/pod.yaml": _pod("a"), "r/.git/HEAD": ""})
    _write(here / "r/m", {"kustomization.yaml": _kustomization("../../base")})
    assert [left.what for left in read_manifests([Kustomized("r/m")]).unbuilt] == ["`../../base` of resources"]
    followed = read_manifests([Kustomized("r/m")], bounds=Bounds.of(["r/m"], follow=True))
    assert (_names(followed), followed.unbuilt) == (["a"], [])


def test_a_kustomization_is_given_by_its_folder(here: Path) -> None:
    _write(here / "m", {"kustomization.yaml": _kustomization("pod.yaml"), "pod.yaml": _pod("a")})
    (finding,) = read_manifests(["m/kustomization.yaml"]).reporter.errors
    assert (finding.code.id, finding.help) == ("EG1049", "give its folder, which is rendered: -k m")
    assert _names(read_manifests(["m/pod.yaml"])) == ["a"]
    _write(here / "empty", {"x": ""})
    assert _codes(read_manifests([Kustomized("empty")])) == ["EG1042"]


def test_a_kustomization_of_nothing_is_an_error_where_it_is_named(here: Path) -> None:
    _write(here / "m", {"kustomization.yaml": "resources: []\n"})
    assert _codes(read_manifests([Kustomized("m")])) == ["EG1046"]
    assert _codes(read_manifests(["m"])) == []


def test_an_object_of_another_api_may_be_in_a_file_of_that_name(here: Path) -> None:
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps}\n"
    _write(here / "m", {"kustomization.yaml": flux, "pod.yaml": _pod("read")})
    assert _names(read_manifests(["m"])) == ["read"]


@pytest.mark.real
def test_the_real_program_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(map(shutil.which, ("kustomize", "kubectl"))):
        if are_missing("kubectl"):
            give_up("kustomize and kubectl", "install one of them, or Go to build kubectl")
        monkeypatch.setenv("PATH", f"{find('kubectl').parent}{os.pathsep}{os.environ['PATH']}")
    patch = "apiVersion: v1\nkind: Pod\nmetadata: {name: base, labels: {tier: front}}\n"
    overlay = _kustomization("../base", more="namespace: shop\nnamePrefix: my-\npatches: [{path: patch.yaml}]\n")
    _write(
        tmp_path,
        {
            "base/kustomization.yaml": _kustomization("pod.yaml"),
            "base/pod.yaml": _pod("base"),
            "overlay/kustomization.yaml": overlay,
            "overlay/patch.yaml": patch,
        },
    )
    monkeypatch.chdir(tmp_path)
    for path in (".", Kustomized("overlay")):
        manifests = read_manifests([path])
        assert (_codes(manifests), manifests.unbuilt) == ([], [])
        assert [(one.id.namespace, one.id.name) for one in manifests.objects] == [("shop", "my-base")]
    _write(tmp_path, {"overlay/kustomization.yaml": _kustomization("../base", "nothing.yaml")})
    assert [left.what for left in read_manifests(["."]).unbuilt] == ["`nothing.yaml` of resources"]


# The programs


def _run(program: str) -> ProgramOutput:
    return run([sys.executable, "-c", f"import os, sys, time\n{program}"])


def test_a_program_gets_no_programs_and_no_way_out() -> None:
    output = _run("print(sorted(os.environ), os.environ['PATH'], os.listdir(os.environ['PATH']))")
    assert output.problem is None
    text = output.content.decode()
    assert all(name in text for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"))
    assert text.endswith(" []\n")


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("sys.stderr.write('Error: no such thing\\n'); sys.exit(1)", "fails: no such thing"),
        (
            "sys.stderr.write('level=INFO x\\nError: a.yaml:1:2\\n  at <.x>:\\n    no x\\nUse --debug'); sys.exit(1)",
            "fails: a.yaml:1:2 at <.x>: no x",
        ),
        (
            'sys.stderr.write(\'E1119 16:10:54.42   23 run.go:72] "command failed" err=<\\n\\tno such\\n'
            "\\tthing\\n >\\n'); sys.exit(1)",
            "fails: no such thing",
        ),
        ("time.sleep(60)", "takes longer than"),
        ("sys.stdout.write('#' * 3000000)", "writes more than"),
    ],
)
def test_a_program_that_fails_says_why(program: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "_TIMEOUT_SECONDS", 1 if "sleep" in program else 60)
    monkeypatch.setattr(rendering, "_MAX_BYTES", 1000 * 1000)
    assert says in (_run(program).problem or "")
