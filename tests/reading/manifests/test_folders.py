"""Folders in practice: files that are not manifests stop no answer, and a possible policy is never dropped."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from eastgate.authority.reading import read_documents, read_manifests
from eastgate.basics.diagnostics import Severity
from eastgate.reading.manifests import Bounds, read, read_text
from eastgate.reading.manifests.heads import type_of
from eastgate.settings import Settings

from .reading import always, never

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"
POLICY = """\
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: p}
"""

# Files that stop no answer: none of them is a manifest of a kind that matters.
ASIDE = {
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"kind": "cluster"}}',
    "dashboard.json": '{"panels": [], "title": "x", "version": 5}',
    "jwks.json": '{"keys": [{"kty": "RSA", "kid": "1"}]}',
    "rows.json": "[1, 2, 3]",
    "tsconfig.json": '{"compilerOptions": {} // a comment\n}',
    "docker-compose.yaml": "version: '3'\nservices: {web: {image: x}}\n",
    "workflow.yml": "name: ci\non: [push]\njobs: {build: {runs-on: x}}\n",
    "cloudformation.yaml": "Resources: {A: {Type: !Ref x}}\n",
    "text.yaml": "just some words\n",
    "twice.yaml": "a: 1\na: 2\n",
    "drone.yml": "kind: pipeline\ntype: docker\nname: default\n",
    "kubeconfig.yaml": "apiVersion: v1\nkind: Config\nclusters: []\n",
    "kind.yaml": "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: []\n",
    "nameless.yaml": "apiVersion: v1\nkind: LimitRange\ndata: {a: b}\n",
    "generated.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: x-}\n",
    "other.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: 5}\nspec: {on: 1, a: 1, a: 2}\n",
    "machines.json": '{"kind": "compute#instanceList", "items": [{"id": 1}], "id": "x"}',
    "two.yaml": "apiVersion: v1\nkind: LimitRange\nmetadata: {name: x}\n---\n"
    "apiVersion: v1\nkind: LimitRange\nmetadata: {name: x}\ndata: {a: b}\n",
    "joined.yaml": "apiVersion: v1\nkind: LimitRange\nmetadata: {name: x}\napiVersion: v1\nkind: LimitRange\n",
    "openapi.yaml": "openapi: 3.0.0\ninfo: {title: x, version: '1'}\npaths: {}\n",
    "schema.json": '{"$schema": "http://x/schema#", "type": "object", "properties": {"kind": {}}}',
    "zarf.yaml": "kind: ZarfPackageConfig\nmetadata: {name: x}\ncomponents: [{name: a}]\n",
    "bundle/x.yaml": "kind: UDSBundle\nmetadata: {name: x}\npackages: []\n",
    "prod-values.yaml": "kind: DaemonSet\nmetadata: {a: b}\n",
    "overrides.yaml": "kind: DaemonSet\nservice: {type: ClusterIP}\n",
    "mkdocs.yml": "site_name: x\nmarkdown_extensions: [{y: !!python/name:a.b }]\n",
    "gitlab.yml": "job: {script: !reference [.setup, script]}\n",
    "patch.yaml": "- op: replace\n  path: /spec/replicas\n  value: 3\n",
    "references.yaml": "nameReference: [{kind: ConfigMap, fieldSpecs: [{path: spec/x, kind: Y}]}]\n",
    "torn.yaml": "apiVersion: v1\nkind: LimitRange\nmetadata: {name: x}\nspec: [\n",
    "several.yaml": "a: 1\n---\nname: x\n",
}  # fmt: skip

# Files that stop every answer: they may hold a policy, or a decisive object.
STOPPING: dict[str, tuple[str | bytes, str]] = {
    "policy.yaml": (POLICY.replace("name: p", "nmae: p"), "EG1034"),
    "generated.yaml": (POLICY.replace("name: p", "generateName: p-"), "EG1035"),
    "capitals.yaml": (POLICY.replace("apiVersion", "apiversion"), "EG1032"),
    "version.yaml": (POLICY.replace("apiVersion: gateway.networking.x-k8s.io/v1alpha2\n", ""), "EG1031"),
    "kind.yaml": (POLICY.replace("kind: AuthorizationPolicy\n", ""), "EG1031"),
    "unknown.yaml": (POLICY.replace("AuthorizationPolicy", "AuthorizationPolcy"), "EG1301"),
    "pod.yaml": (POD.replace("{name: a}", "{labels: {a: b}}"), "EG1034"),
    "config.yaml": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {a: b}}\n", "EG1034"),
    "service.yaml": ("kind: Service\nmetadata: {name: x}\n", "EG1031"),
    "list.yaml": (f"- {POLICY}".replace("\n", "\n  "), "EG1030"),
    "broken.yaml": (POLICY + "spec: [\n", "EG1009"),
    "broken.json": ('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}', "EG1009"),
    "escaped.yaml": ('"\\x6bind": Pod\n"\\x61piVersion": [\n', "EG1009"),
    "twice.yaml": (POD + "spec: {serviceAccountName: a, serviceAccountName: b}\n", "EG1015"),
    "joined.yaml": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n" + POD, "EG1048"),
    "utf16.yaml": (POLICY.encode("utf-16"), "EG1004"),
    "unfinished.yaml": ("apiVersion: v1\nkind: List\nmetadata: {continue: x}\nitems: []\n", "EG1047"),
}


def folder_of(tmp_path: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = tmp_path / "m" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path / "m"


def codes_in(*paths: Path | str, exclude: tuple[str, ...] = ()) -> list[str]:
    return [one.code.id for one in read_manifests(paths, bounds=Bounds.of(paths, exclude=exclude)).reporter]


@pytest.mark.parametrize("name", ASIDE)
def test_an_unused_or_invalid_manifest_stops_no_answer(name: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {name: ASIDE[name], "pod.yaml": POD})
    manifests = read_manifests([folder])
    assert [one.code.id for one in manifests.reporter] == []
    assert [one.name for one in manifests.objects] == ["a"]
    assert read_documents([folder], Settings()).reporter.errors == []


@pytest.mark.parametrize("name", STOPPING)
def test_a_possible_policy_or_deciding_object_stops_every_answer(name: str, tmp_path: Path) -> None:
    content, code = STOPPING[name]
    folder = folder_of(tmp_path, {name: content, "good.yaml": POD.replace("name: a", "name: other")})
    manifests = read_manifests([folder])
    assert code in [one.code.id for one in manifests.reporter.errors]


TEMPLATES = {
    "policy.yaml": ("spec: {{ .Values.spec }}\n", True),
    "range.yaml": ("spec:\n  rules:\n  {{- range .Values.rules }}\n  - {{ . }}\n  {{- end }}\n", True),
    "jinja.yaml": ("spec:\n{% if open %}\n  rules: []\n{% endif %}\n", True),
    "sed.yaml": ("spec: @SPEC@\n", True),
    "braces.yaml": ("spec: {PREFIX}.1\n", True),
    "head.yaml": ("  namespace: {{ .Values.namespace }}\nspec: {}\n", False),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_template_text_is_a_placeholder_and_a_policy_with_it_closes_its_namespace(name: str, tmp_path: Path) -> None:
    text, has_head = TEMPLATES[name]
    head = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: p\n"
    folder = folder_of(tmp_path, {name: head + text, "pod.yaml": POD})
    manifests = read_manifests([folder])
    assert codes_in(folder) == ["EG1052"]
    assert [part.what for part in manifests.unbuilt] == ["NetworkPolicy p" if has_head else "a document"]
    assert all(part.can_decide for part in manifests.unbuilt)
    assert [str(fault.policy.targets[0]) for fault in manifests.closing] == (["pods {} in default"] * has_head)
    assert manifests.stopping(strict=True)


def test_a_template_that_is_named_is_an_error(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"a.yaml": POLICY + "spec: {{ .Values.spec }}\n"})
    assert codes_in(folder / "a.yaml") == ["EG1010"]


def test_a_template_of_a_kind_that_decides_nothing_is_passed_over(tmp_path: Path) -> None:
    limits = "apiVersion: v1\nkind: LimitRange\nmetadata:\n  name: x\nspec: {{ .Values.limits }}\n"
    folder = folder_of(tmp_path, {"a.yaml": limits, "pod.yaml": POD})
    assert (codes_in(folder), read_manifests([folder]).unbuilt) == ([], [])


def test_a_kustomization_with_template_text_is_none(tmp_path: Path) -> None:
    kustomization = "namespace: {{ .namespace }}\nresources: [web.yaml]\n"
    broken = {"app/kustomization.yaml": kustomization, "app/web.yaml": "kind: {{ .kind }}\n"}
    folder = folder_of(tmp_path, {**broken, "app/more/policy.yaml": POLICY, "pod.yaml": POD})
    assert codes_in(folder) == ["EG1052"]
    assert [one.name for one in read_manifests([folder]).objects] == ["a"]


def test_a_skipped_text_is_reported_with_place_and_reason(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"x.yaml": "a: [1,\n", "pod.yaml": POD})
    (finding,) = read_manifests([folder]).reporter.diagnostics
    assert (finding.code.id, finding.code.severity) == ("EG1040", Severity.INFO)
    assert finding.message.startswith("skipped, because it has neither `apiVersion` nor `kind`: ")
    assert finding.span is not None


def test_a_file_that_is_named_must_be_manifests(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"jwks.json": ASIDE["jwks.json"], "pod.yaml": POD})
    assert codes_in(folder / "jwks.json") == ["EG1030"]
    assert codes_in(folder) == []


@pytest.mark.parametrize("content", ["", "\n", "# only a comment\n", "---\n---\n", "---\n# x\n...\n"])
def test_an_empty_input_that_is_named_is_an_error(content: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"empty.yaml": content, "pod.yaml": POD})
    assert codes_in(folder / "empty.yaml") == ["EG1046"]
    assert codes_in(folder) == []
    found = read_manifests(["-"], stdin=io.BytesIO(content.encode())).reporter.diagnostics
    assert [(one.code.id, one.message) for one in found] == [("EG1046", "there is nothing in standard input")]


def test_an_empty_list_is_not_nothing() -> None:
    text = b"apiVersion: v1\nkind: List\nitems: []\n"
    assert read_manifests(["-"], stdin=io.BytesIO(text)).reporter.diagnostics == []


def test_objects_that_a_cluster_names_have_a_name_each(tmp_path: Path) -> None:
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: hook-}\nspec: {template: {spec: {}}}\n"
    manifests = read_manifests([folder_of(tmp_path, {"a.yaml": f"{job}---\n{job}"})])
    assert manifests.reporter.diagnostics == []
    assert [one.name for one in manifests.objects] == ["hook-xxxx1", "hook-xxxx2"]


def test_a_policy_needs_a_name_of_its_own() -> None:
    found = read_text("f.yaml", POLICY.replace("name: p", "generateName: p-"), positioned=always).reporter.diagnostics
    assert [one.code.id for one in found] == ["EG1035"]


# Exclusion

BROKEN = POLICY + "spec: [\n"


@pytest.mark.parametrize(
    ("patterns", "left_out", "read_all"),
    [
        (("drafts",), 2, True),
        (("drafts/",), 2, True),
        (("/drafts/*.yaml",), 1, False),
        (("*.yaml", "!pod.yaml"), 2, True),
        (("**/deep",), 1, False),
        (("other",), 0, False),
    ],
)
def test_patterns_leave_files_out_and_they_are_counted(
    patterns: tuple[str, ...], left_out: int, read_all: bool, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path, {"drafts/a.yaml": BROKEN, "drafts/deep/b.yaml": BROKEN, "pod.yaml": POD})
    manifests = read_manifests([folder], bounds=Bounds.of([folder], exclude=patterns))
    assert (manifests.excluded, not manifests.reporter.errors) == (left_out, read_all)
    (folder / ".eastgateignore").write_text("# what is not applied\n\n" + "\n".join(patterns) + "\n")
    manifests = read_manifests([folder])
    assert (manifests.excluded, not manifests.reporter.errors) == (left_out, read_all)


def test_an_ignore_file_applies_to_its_folder_and_overrides_those_above(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"a/x.yaml": BROKEN, "a/pod.yaml": POD, "x.yaml": POD.replace("name: a", "name: x")})
    (folder / "a/.eastgateignore").write_text("/x.yaml\n!pod.yaml\n")
    (folder / ".eastgateignore").write_text("pod.yaml\n")
    manifests = read_manifests([folder])
    assert (manifests.excluded, manifests.reporter.diagnostics) == (1, [])
    assert sorted(one.name for one in manifests.objects) == ["a", "x"]


def test_an_invalid_pattern_is_an_error(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"pod.yaml": POD})
    assert codes_in(folder, exclude=("!",)) == ["EG1050"]
    (folder / ".eastgateignore").write_text("!\n")
    assert codes_in(folder) == ["EG1050"]
    (folder / ".eastgateignore").write_bytes(b"\xff\n")
    assert codes_in(folder) == ["EG1001"]


def test_a_folder_of_which_all_is_left_out_is_an_error(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"pod.yaml": POD})
    (finding,) = read_manifests([folder], bounds=Bounds.of([folder], exclude=["*"])).reporter.diagnostics
    assert (finding.code.id, finding.help) == ("EG1003", "1 files are left out by --exclude or .eastgateignore")


# Charts


def test_a_chart_is_rendered_or_left_out_and_its_templates_are_no_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    templates = {f"chart/templates/{n}.yaml": BROKEN + "{{ .Values.x }}\n" for n in range(5)}
    chart = {"chart/Chart.yaml": "apiVersion: v2\nname: x\n", "chart/values.yaml": "a: 1\n"}
    folder_of(tmp_path, {"pod.yaml": POD, **templates, **chart, "chart/charts/sub/Chart.yaml": "name: y\n"})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for given in ("m", "m/chart"):
        manifests = read_manifests([given])
        assert not manifests.reporter.diagnostics
        assert [left.what for left in manifests.unbuilt] == ["chart `m/chart`"]
    (finding, *_) = read_manifests(["m/chart/templates"]).reporter.errors
    assert (finding.code.id, finding.help) == ("EG1045", "give the chart, which is rendered: -f m/chart")
    assert codes_in("m", exclude=("chart",)) == []


_TWICE = "apiVersion: v1\nkind: Thing\nkind: Pod\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    "text",
    [
        _TWICE,
        "".join(f" {line}\n" for line in _TWICE.splitlines()),
        _TWICE.replace("kind: Pod", "? kind\n: Pod"),
        _TWICE.replace("kind: Pod", '"\\x6bind": Pod'),
        _TWICE.replace("kind: Pod", "kind: *k").replace("v1", "&k v1"),
        "{apiVersion: v1, kind: Thing, kind: Pod, metadata: {name: a}}",
        '{"apiVersion": "v1", "kind": "Thing", "kind": "Pod", "metadata": {"name": "a"}}',
        '{"apiVersion": "v1", "kind": "Thing", "\\u006bind": "Pod", "metadata": {"name": "a"}}',
        '{"apiVersion": "v1", "kind": "Thing", "items": [], "items": [{"kind": "Pod"}]}',
    ],
)
def test_a_duplicate_type_stops_an_answer_if_either_kind_is_used(text: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"a.yaml": text, "pod.yaml": POD.replace("name: a", "name: b")})
    assert read_manifests([folder]).reporter.errors
    unused = folder_of(tmp_path / "x", {"a.yaml": text.replace("Pod", "Thing"), "pod.yaml": POD})
    if "*" not in text and "\\" not in text:
        assert not read_manifests([unused]).reporter.errors


# Skimming


@pytest.mark.parametrize(
    "text",
    [
        POD.replace("kind: Pod", '"kind": Pod'),
        POD.replace("kind: Pod", "? kind\n: Pod"),
        POD.replace("kind: Pod", "kind: &k Pod"),
        POD.replace("kind: Pod", "kind: Po\n  d"),
        POD.replace("kind: Pod", "kind:\n  Pod"),
        POD.replace("kind: Pod", "kind: Pod\n\n  x"),
        POD + 'data: "\nkind: Other\n"\n',
        POD + '"kind": Other\n',
        POD + "<<: {kind: Other}\n",
        POD + "kind: Other\n",
        POD + "\rkind: Other\n",
        POD + "x: {\na: b,\nkind: Other}\n",
        "{apiVersion: v1, kind: Pod}\n",
        "apiVersion: v1\nkind: PodList\nitems: []\n",
        "--- kind: Pod\napiVersion: v1\n",
        "kind: Pod\n",
        "- apiVersion: v1\n  kind: Pod\n",
        POD.replace("\n", "\x85"),
        f' data: "\n{POD}x: "\n apiVersion: v1\n kind: Other\n',
        f"# c\n\n---\n # c\n data: '\n{POD}x: '\n kind: Other\n",
        f' {{data: "\n{POD}x: ", kind: Other}}\n',
        POD + "items:\n- kind: Other\n",
    ],
)
def test_an_unproven_type_is_not_returned(text: str) -> None:
    assert type_of(text) is None


@pytest.mark.parametrize("text", [POD, f"# c\n---\n{POD}", f"---\n{POD}spec:\n- a\n-\n  b\n# c\n", POD.rstrip()])
def test_the_type_of_usual_manifests_is_found(text: str) -> None:
    assert type_of(text) == ("v1", "Pod")


def test_skimmed_objects_are_counted(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"a.yaml": f"{POD}---\napiVersion: v1\nkind: LimitRange\nmetadata: {{name: c}}\n"})
    manifests = read_manifests([folder])
    assert (len(manifests.objects), manifests.unused) == (1, 1)
    assert [one.kind for one in read_documents([folder], Settings()).documents] == ["Pod", "LimitRange"]
    reading = read([folder], positioned=never, matters=lambda _version, kind: kind == "Pod", skim=True)
    assert (len(reading.documents), reading.unused) == (1, 1)
