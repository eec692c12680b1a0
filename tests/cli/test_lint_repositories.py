"""`lint` at the root of a repository: its findings, its silence, and its exit status."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

LAYOUTS = Path(__file__).parent.parent / "repositories"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: NAME}}
spec: {containers: [{name: main, ports: [{containerPort: 8080}]}]}
---
"""
POLICY = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: POLICY}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress: [{from: [{podSelector: {matchLabels: {LABEL}}}]}]
---
"""
BAD = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad, labels: {a: 1}}\n---\n"
NEVER = ("--fail-on", "never")


def _write(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path("m", name).parent.mkdir(parents=True, exist_ok=True)
        Path("m", name).write_text(text, encoding="utf-8")


def _codes(text: str) -> list[str]:
    return re.findall(r"(?:error|warning|info)\[(EG\d+)\]", text)


def _copied(layout: str) -> None:
    shutil.copytree(LAYOUTS / layout, "m")


# Exit statuses

WEB, GOOD = POD.replace("NAME", "web"), POLICY.replace("POLICY", "web").replace("LABEL", "app: web")
UNUSED = POLICY.replace("POLICY", "unused").replace("app: web", "app: gone", 1).replace("LABEL", "app: web")
BUILT = "resources: [web.yaml]\n"
REMOTE = "resources: [web.yaml, 'https://example.com/a//b?ref=1']\n"
STATUSES: dict[str, tuple[dict[str, str], int, int]] = {
    "nothing is wrong": ({"a.yaml": WEB + GOOD}, 0, 0),
    "a warning": ({"a.yaml": WEB + UNUSED}, 1, 0),
    "an error in a manifest": ({"a.yaml": WEB + BAD}, 1, 3),
    "an error, and a warning": ({"a.yaml": WEB + UNUSED + BAD}, 1, 3),
    "a text that cannot be read": ({"a.yaml": WEB, "b.yaml": "kind: ["}, 1, 3),
    "nothing that can be read": ({"a.yaml": "kind: ["}, 2, 2),
    "template text": ({"a.yaml": WEB + "apiVersion: v1\nkind: Pod\nmetadata: {{ .Values.metadata }}\n"}, 3, 3),
    "an error in one environment": (
        {**{f"{name}/kustomization.yaml": BUILT for name in "ab"}, "a/web.yaml": WEB + GOOD, "b/web.yaml": WEB + BAD},
        *(1, 3),
    ),
    "a remote part in one environment": (
        {
            **{f"{name}/web.yaml": WEB for name in "ab"},
            "a/kustomization.yaml": BUILT,
            "b/kustomization.yaml": REMOTE,
        },
        *(3, 3),
    ),
    "one environment that cannot be read": (
        {"a/kustomization.yaml": BUILT, "a/web.yaml": WEB, "b/kustomization.yaml": BUILT, "b/web.yaml": "kind: ["},
        *(3, 3),
    ),
}


@pytest.mark.real  # builds are processes
@pytest.mark.parametrize("name", STATUSES)
def test_the_exit_status_is_the_same_with_one_environment_and_with_several(name: str, cli: Cli) -> None:
    files, status, never = STATUSES[name]
    _write(files)
    done = cli("lint", "m")
    assert (done.exit_code, cli("lint", "m", *NEVER).exit_code) == (status, never), done.output


def test_links_that_lead_out_are_one_block_and_a_part_that_is_not_read(cli: Cli) -> None:
    _write({"web.yaml": WEB})
    Path("outside.yaml").write_text(GOOD, encoding="utf-8")
    for number in range(4):
        os.symlink("../outside.yaml", f"m/link-{number}.yaml")
    done = cli("lint", "m")
    assert done.exit_code == 3
    assert _codes(done.output) == ["EG1023"]
    assert "also: 3 more: `m/link-1.yaml`, `m/link-2.yaml`, `m/link-3.yaml`" in done.output
    assert "left out" not in done.output
    asked = cli("check", "m", "--from", "anonymous", "--to", "pod:web", "--port", "8080")
    assert asked.exit_code == 3
    left = "left out: `m/link-0.yaml`, `m/link-1.yaml`, `m/link-2.yaml` and 1 more: path leads out of the folder"
    assert left in asked.output


# Findings that are written once


def test_files_that_hold_variants_of_the_same_objects_are_one_finding(cli: Cli) -> None:
    other = "".join(POD.replace("NAME", name).replace("8080", "80") for name in ("web", "api"))
    more = POD.replace("NAME", "web").replace("8080", "90")
    apart = POD.replace("NAME", "db")
    _write({"a.yaml": WEB + POD.replace("NAME", "api"), "b.yaml": other, "c.yaml": more})
    _write({"x/one.yaml": apart, "x/two.yaml": apart.replace("8080", "80")})
    done = cli("lint", "m")
    assert _codes(done.output) == ["EG1036", "EG1036"]
    assert "`m/a.yaml`, `m/b.yaml`, `m/c.yaml` hold variants of 2 objects: Pod web, Pod api\n" in done.output
    assert "also: 2 more: Pod api (m/b.yaml:8), Pod web (m/c.yaml:3)" in done.output
    assert "Pod `db` is written twice, with different `spec.containers[0].ports[0].containerPort`" in done.output
    assert "left out" not in done.output
    assert len(_codes(cli("lint", "m", "-v").output)) == 4


@pytest.mark.real  # builds are processes
def test_what_is_left_out_for_one_reason_is_one_line_for_all_environments(cli: Cli) -> None:
    for name in ("a", "b"):
        _write({f"{name}/kustomization.yaml": REMOTE.replace("/b?", f"/{name}?"), f"{name}/web.yaml": WEB})
    _write({"c/kustomization.yaml": BUILT, "c/web.yaml": WEB})
    (line,) = [line for line in cli("lint", "m").output.splitlines() if "left out: " in line]
    assert line.startswith("a, b: left out: `https://example.com/a//a?ref=1` of resources (m/a/kustomization.yaml:1), ")
    assert line.endswith(": it would have to be fetched (they may be about anything)")
    assert cli("lint", "m", "-v").output.count("left out: ") == 2


# Not a finding


def test_a_folder_of_examples_with_objects_of_one_name_is_several_environments(cli: Cli) -> None:
    web = WEB.replace("metadata: {name: web, labels: {app: web}}", "metadata:\n  name: web\n  labels: {app: web}")
    named = web.replace("  labels", "  namespace: default\n  labels").replace("8080", "80")
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "x"}}, "spec": {}}'
    items = "".join(f"- {line}\n" if line.startswith("api") else f"  {line}\n" for line in web.splitlines()[:-1])
    listed = f"apiVersion: v1\nkind: List\nitems:\n{items.replace('8080', '90')}"
    _write({"one/web.yaml": web, "two/web.yaml": named, "three/web.json": text, "four/web.yaml": listed})
    done = cli("lint", "m")
    assert (done.exit_code, _codes(done.output)) == (0, [])
    assert "; 4 environments: four, one, three, two" in done.output


def test_variants_of_a_secret_that_nothing_reads_are_no_finding(cli: Cli) -> None:
    written = "apiVersion: v1\nkind: Secret\nmetadata: {name: key, labels: {a: b}}\nstringData: {key: KEY}\n---\n"
    _write({"a.yaml": WEB + written, "b.yaml": written.replace("KEY", "other")})
    assert (cli("lint", "m").exit_code, _codes(cli("lint", "m").output)) == (0, [])
    gateway = (LAYOUTS / "apart/gateways/gateway.yaml").read_text("utf-8")
    keys = {"apiKey": {"selector": {"matchLabels": {"a": "b"}}}}
    policy = (LAYOUTS / "apart/stray/policy.yaml").read_text("utf-8").partition("  targetRef")[0]
    target = "  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}\n"
    rules = f"  rules: {{authentication: {{keys: {json.dumps(keys)}}}}}\n"
    for reader in (gateway, policy + target + rules):
        _write({"reader.yaml": reader})
        assert "EG1036" in _codes(cli("lint", "m").output)


def test_pods_that_an_operator_may_make_are_not_missed(cli: Cli) -> None:
    _copied("operators")
    done = cli("lint", "m", "--select", "EG60,EG63")
    assert (done.exit_code, _codes(done.output)) == (0, [])
    for name in ("definitions", "compute"):
        text = Path(f"m/{name}.yaml").read_text("utf-8")
        head = text if name == "definitions" else text.partition("---")[0]
        Path(f"m/{name}.yaml").write_text(text.replace(head, ""), encoding="utf-8")
    assert sorted(_codes(cli("lint", "m", "-v").output)) == ["EG6003", "EG6115", "EG6301", "EG6301", "EG6301"]


def test_misspelt_labels_are_found_beside_an_operator(cli: Cli) -> None:
    _copied("operators")
    typo = (POD + POLICY).replace("NAME", "web").replace("POLICY", "typo").replace("LABEL", "app: wep")
    owned = POLICY.replace("POLICY", "owned").replace("LABEL", "queue.example.dev/job: gone")
    own = POD.replace("NAME", "own").replace("app: own", "queue.example.dev/job: own")
    text = f"{typo}{owned}{own}".replace("metadata: {", "metadata: {namespace: compute, ")
    Path("m/typo.yaml").write_text(text, encoding="utf-8")
    found = cli("lint", "m", "--select", "EG63").output
    assert "nothing is labelled app: wep; did you mean app: web?" in found
    assert "NetworkPolicy/compute/owned selects pods {queue.example.dev/job: gone}" not in found  # it makes others


def test_a_label_of_a_definition_that_people_write_too_is_looked_for(cli: Cli) -> None:
    _copied("operators")
    policy = POLICY.replace("POLICY", "owned").replace("LABEL", "queue.example.dev/job: a")
    own = POD.replace("NAME", "own").replace("app: own", "queue.example.dev/job: own")
    Path("m/owned.yaml").write_text(WEB + policy + own, encoding="utf-8")
    found = cli("lint", "m", "--select", "EG63").output
    assert "NetworkPolicy/default/owned selects pods {queue.example.dev/job: a} in default" in found


@pytest.mark.real  # builds are processes
def test_what_another_environment_of_the_same_cluster_has_is_not_missing(cli: Cli) -> None:
    _copied("apart")
    done = cli("lint", "m")
    assert _codes(done.output) == ["EG5026"]
    assert "no manifest declares Gateway edge/gone" in done.output
    policies = {
        "pods/kustomization.yaml": BUILT,
        "pods/web.yaml": POD.replace("NAME", "far"),
        "policies/kustomization.yaml": BUILT,
        "policies/web.yaml": WEB + POLICY.replace("POLICY", "far").replace("LABEL", "app: far"),
    }
    _write(policies)
    assert _codes(cli("lint", "m").output) == ["EG5026"]
    _write({"pods/web.yaml": POD.replace("NAME", "far") + WEB})  # now they are alternatives
    assert _codes(cli("lint", "m").output) == ["EG6301", "EG5026"]


@pytest.mark.real  # builds are processes
def test_template_text_is_reported_once_and_is_no_environment(cli: Cli) -> None:
    _copied("templates")
    done = cli("lint", "m")
    assert done.exit_code == 3
    assert _codes(done.output) == ["EG1052"]
    assert "; 2 environments: prod, jobs" in done.output
    assert "jobs: left out: NetworkPolicy jobs/jobs (m/jobs/policy.yaml:10)" in done.output
    asked = cli("check", "m", "--from", "pod:jobs/worker", "--to", "pod:jobs/worker", "--port", "8080")
    assert asked.output.startswith("DENY (from what was read) in jobs; not in prod")
