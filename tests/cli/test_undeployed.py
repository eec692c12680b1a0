"""Policies and workloads of a repository that no environment has are named where they could matter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.reading.repository.programs import stand_in

PODS = "".join(
    f"---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: shop, labels: {{app: {name}}}}}\n"
    f"spec: {{serviceAccountName: {name}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}\n"
    for name in ("api", "web")
)
CLOSED = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: shop}
spec: {podSelector: {matchLabels: {app: api}}, policyTypes: [Ingress]}
"""
NOBODY = """\
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: nobody, namespace: shop}
spec: {selector: {matchLabels: {app: api}}}
"""
UNREAD = CLOSED.replace("networking.k8s.io/v1", "cilium.io/v2").replace("NetworkPolicy", "CiliumNetworkPolicy")
UNREAD = UNREAD.replace("podSelector", "endpointSelector").replace(", policyTypes: [Ingress]", "")
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: NAME, namespace: argocd}
spec:
  destination: {namespace: shop}
  source: {repoURL: https://example.com/repository.git, path: NAME, directory: {exclude: 'p*.yaml'}}
"""
ASK = ("--from", "pod:shop/web", "--to", "pod:shop/api", "--port", "8080")
WEB = ("--from", "pod:shop/api", "--to", "pod:shop/web", "--port", "8080")
DEPLOYED = "(from what is deployed)"


@pytest.fixture
def repo(cli: Cli, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`cli` in a repository, beside a stand-in for kustomize."""
    stand_in(monkeypatch, tmp_path_factory.mktemp("bin"))
    Path(".git").mkdir()
    return cli


def _write(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def _overlays(*names: str) -> None:
    for name in names:
        _write({f"overlays/{name}/kustomization.yaml": "resources: [pods.yaml]\n", f"overlays/{name}/pods.yaml": PODS})


@pytest.mark.parametrize("names", [("prod",), ("dev", "prod")])
@pytest.mark.parametrize("policy", [CLOSED, NOBODY, UNREAD], ids=["network", "mesh", "unread"])
def test_a_policy_beside_a_kustomization_that_does_not_name_it_is_named(
    names: tuple[str, ...], policy: str, repo: Cli
) -> None:
    _overlays(*names)
    _write({"overlays/prod/closed.yaml": policy})
    result = repo("check", ".", *ASK)
    assert (result.exit_code, result.stdout.startswith(f"ALLOW {DEPLOYED} ")) == (3, True)
    assert "(no environment has it), of which 1 " in result.stdout
    assert "overlays/prod/closed.yaml:1" in result.stdout
    linted = repo("lint", ".", "-o", "json")
    (finding,) = [each for each in _findings(json.loads(linted.stdout)) if each["code"] == "EG1044"]
    assert (linted.exit_code, finding["severity"]) == (0, "info")
    if policy is not UNREAD:  # which may be about callers, too
        other = repo("check", ".", *WEB)
        assert (other.exit_code, DEPLOYED in other.stdout) == (0, False)


def _findings(data: dict[str, Any]) -> list[dict[str, str]]:
    """The findings of all environments, each once."""
    each = data.get("environments")
    reports = list(each.values()) if isinstance(each, dict) else [data]
    found = [finding for report in reports for finding in report["findings"]]
    return [finding for number, finding in enumerate(found) if finding not in found[:number]]


def test_an_egress_policy_matters_to_its_caller(repo: Cli) -> None:
    _overlays("prod")
    _write({"overlays/prod/closed.yaml": CLOSED.replace("Ingress", "Egress")})
    assert repo("check", ".", *WEB).exit_code == 3
    assert repo("check", ".", *ASK).exit_code == 0


def test_what_is_denied_anyway_needs_no_word(repo: Cli) -> None:
    _overlays("prod")
    _write({"overlays/prod/kustomization.yaml": "resources: [pods.yaml, closed.yaml]\n"})
    _write({"overlays/prod/closed.yaml": CLOSED, "overlays/prod/more.yaml": NOBODY})
    result = repo("check", ".", *ASK)
    assert (result.exit_code, DEPLOYED in result.stdout) == (1, False)


@pytest.mark.parametrize("names", [("prod",), ("dev", "prod")])
def test_a_component_that_nothing_uses_is_named(names: tuple[str, ...], repo: Cli) -> None:
    _overlays(*names)
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [closed.yaml]\n"
    _write({"components/closed/kustomization.yaml": component, "components/closed/closed.yaml": CLOSED})
    assert repo("check", ".", *ASK).exit_code == 3


def test_the_parts_of_builds_and_files_that_decide_nothing_are_not_named(repo: Cli) -> None:
    _overlays("dev", "prod")
    patch = CLOSED.replace("policyTypes: [Ingress]", "policyTypes: [Egress]")
    more = "patches: [{path: patch.yaml}]\nconfigMapGenerator: [{name: c, files: [file.yaml]}]\n"
    _write({"overlays/prod/kustomization.yaml": f"resources: [pods.yaml, closed.yaml]\n{more}"})
    _write({"overlays/prod/closed.yaml": CLOSED, "overlays/prod/patch.yaml": patch, "overlays/prod/file.yaml": CLOSED})
    unused = "kind: Component\npatches: [{path: patch.yaml}]\n"
    _write({"unused/kustomization.yaml": unused, "unused/patch.yaml": patch, "unused/values.yaml": "kind: Pod\n"})
    apps = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\nspec: {replicas: 2}\n"
    _write({"overlays/dev/api_patch.yaml": apps})  # which nothing uses
    _write({"overlays/dev/dashboard.json": '{"kind": "Dashboard"}', "overlays/dev/c.yaml": "apiVersion: v1\nkind: X\n"})
    assert repo("lint", ".").stdout == "no findings; 2 environments: dev, prod\n"


@pytest.mark.parametrize("names", [("apps",), ("apps", "more")])
def test_what_argo_cd_excludes_is_no_part_of_its_environment(names: tuple[str, ...], repo: Cli) -> None:
    for name in names:
        _write({f"argocd/{name}.yaml": APPLICATION.replace("NAME", name), f"{name}/all.yaml": PODS})
    _write({"apps/p.yaml": CLOSED})
    result = repo("check", ".", *ASK)
    assert (result.exit_code, result.stdout.startswith(f"ALLOW {DEPLOYED} ")) == (3, True)
    assert "apps/p.yaml:1" in result.stdout


def test_what_one_application_excludes_another_one_may_deploy(repo: Cli) -> None:
    only = APPLICATION.replace("name: NAME", "name: only").replace("NAME", "apps").replace("exclude", "include")
    _write({"argocd/apps.yaml": APPLICATION.replace("NAME", "apps"), "argocd/only.yaml": only})
    _write({"apps/all.yaml": PODS, "apps/p.yaml": CLOSED})
    assert "EG1044" not in repo("lint", ".").stdout


def test_a_workload_that_nothing_deploys_is_named(repo: Cli) -> None:
    _overlays("dev", "prod")
    _write({"overlays/prod/more.yaml": PODS.replace("name: api", "name: batch")})
    linted = repo("lint", ".").stdout
    assert "no environment has Pod shop/batch, Pod shop/web" in linted


def test_a_file_that_is_left_out_on_purpose_is_not_named(repo: Cli) -> None:
    _overlays("dev", "prod")
    _write({"overlays/prod/closed.yaml": CLOSED, ".eastgateignore": "closed.yaml\n"})
    assert repo("check", ".", *ASK).exit_code == 0
    Path(".eastgateignore").unlink()
    assert repo("check", ".", *ASK, "--exclude", "closed.yaml").exit_code == 0
    assert repo("check", ".", *ASK, "--unread", "ignore").exit_code == 0


def test_an_environment_that_lacks_the_destination_is_still_one_that_lacks_it(repo: Cli) -> None:
    _overlays("prod")
    _write({"overlays/dev/kustomization.yaml": "resources: [web.yaml]\n"})
    _write({"overlays/dev/web.yaml": PODS.replace("name: api", "name: other"), "overlays/dev/closed.yaml": CLOSED})
    result = repo("check", ".", *ASK)
    assert result.stdout.splitlines()[0] == f"ALLOW {DEPLOYED} in prod; not in dev"
    assert result.exit_code == 3


def test_a_graph_marks_what_such_a_policy_could_deny(repo: Cli) -> None:
    _overlays("prod")
    _write({"overlays/prod/closed.yaml": CLOSED})
    result = repo("graph", ".")
    assert (result.exit_code, "allow?" in result.stdout) == (3, True)
    assert "no environment has it" in result.stdout


FLUX = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
"""
OPEN = CLOSED.replace("name: closed", "name: open, annotations: {NOTE}").replace(
    "policyTypes", "ingress: [{}], policyTypes"
)


@pytest.mark.parametrize(
    ("tool", "note", "is_applied"),
    [
        ("argo", "argocd.argoproj.io/hook: Skip", False),
        ("argo", "argocd.argoproj.io/hook: 'SyncFail,PostDelete'", False),
        ("argo", "argocd.argoproj.io/hook: PreSync, argocd.argoproj.io/hook-delete-policy: HookSucceeded", False),
        ("argo", "argocd.argoproj.io/hook: PreSync", True),
        ("argo", "config.kubernetes.io/local-config: 'true'", True),
        ("argo", "kustomize.toolkit.fluxcd.io/reconcile: disabled", True),
        ("flux", "kustomize.toolkit.fluxcd.io/reconcile: disabled", False),
        ("flux", "kustomize.toolkit.fluxcd.io/ssa: Ignore", False),
        ("flux", "config.kubernetes.io/local-config: 'true'", False),
        ("flux", "config.kubernetes.io/local-config: 'false'", True),
        ("flux", "argocd.argoproj.io/hook: Skip", True),
    ],
)
def test_a_policy_that_its_tool_does_not_apply_allows_nothing(
    tool: str, note: str, is_applied: bool, repo: Cli
) -> None:
    root = APPLICATION.replace("NAME", "apps").replace("p*.yaml", "") if tool == "argo" else FLUX
    _write({"root.yaml": root, "apps/pods.yaml": PODS, "apps/closed.yaml": CLOSED})
    _write({"apps/open.yaml": OPEN.replace("NOTE", note)})
    assert repo("check", ".", *ASK).exit_code == (0 if is_applied else 1)
    assert ("no environment has NetworkPolicy shop/open" in repo("lint", ".").stdout) is not is_applied


def test_a_policy_that_its_tool_does_not_apply_is_named_where_it_would_deny(repo: Cli) -> None:
    closed = CLOSED.replace("name: closed", "name: closed, annotations: {argocd.argoproj.io/hook: Skip}")
    root = APPLICATION.replace("NAME", "apps").replace("p*.yaml", "")
    _write({"root.yaml": root, "apps/pods.yaml": PODS, "apps/closed.yaml": closed})
    result = repo("check", ".", *ASK)
    assert (result.exit_code, result.stdout.startswith(f"ALLOW {DEPLOYED} ")) == (3, True)


def test_files_that_templates_read_are_parts_of_their_chart(repo: Cli) -> None:
    chart = {"chart/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "chart/templates/pods.yaml": PODS}
    _write({**chart, "chart/files/p.yaml": CLOSED})
    assert "EG1044" in repo("lint", ".").stdout
    _write({"chart/templates/x.yaml": '{{ .Files.Get "files/p.yaml" }}\n'})
    assert "EG1044" not in repo("lint", ".").stdout
