"""Charts of environments are rendered, and parts that cannot be rendered are named."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from eastgate.reading.manifests import Plain
from eastgate.reading.repository import ChartRender, KustomizeBuild
from tests.reading.repository.building import (
    POLICY,
    built,
    environment,
    left_out,
    names,
    places,
    read_environment,
    write,
)

CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
TEMPLATE = """\
{{- if .Values.enabled }}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .Release.Name }}-{{ .Values.name }}
spec:
  podSelector: {}
  ingress:
    - ports:
        - port: {{ .Values.port }}
  policyTypes:
    - Ingress
{{- end }}
"""
FILES = {
    "web/Chart.yaml": CHART,
    "web/values.yaml": "enabled: true\nname: own\nport: 80\n",
    "web/templates/policy.yaml": TEMPLATE,
}
LIBRARY = {
    "web/charts/common/Chart.yaml": "apiVersion: v2\nname: common\nversion: 1.0.0\ntype: library\n",
    "web/charts/common/templates/_names.tpl": '{{ define "common.name" }}common{{ end }}',
}


def _chart(name: str, *, text: str = POLICY) -> dict[str, str]:
    chart = f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n"
    return {"Chart.yaml": chart, "templates/policy.yaml": text.replace("name: web", f"name: {name}")}


def _below(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def _depends(*entries: str) -> str:
    return CHART + "dependencies:\n" + "".join(f"- {{version: 1.0.0, {entry}}}\n" for entry in entries)


def test_a_chart_is_rendered_with_the_values_of_its_release(helm: str, here: Path) -> None:
    write(here, {**FILES, "one.yaml": "name: one\nport: 1\n", "two.yaml": "name: two\n", "last.yaml": "port: 4\n"})
    reading = built(ChartRender("web", "my", "shop"), helm=helm)
    assert (names(reading), left_out(reading)) == (["shop/my-own"], [])
    part = ChartRender("web", "my", None, ("one.yaml", "two.yaml"), ({"port": 2}, {"port": 3}))
    reading = built(part, helm=helm, namespace="shop")
    assert names(reading) == ["shop/my-two"]
    assert "port: 3\n" in _text(reading.documents[0].span.built)
    reading = read_environment(environment(part, helm=helm, values=("last.yaml",)))
    assert "port: 4\n" in _text(reading.documents[0].span.built)
    assert names(built(ChartRender("web", "my", values=({"enabled": False},)), helm=helm)) == []


def _text(span: object) -> str:
    return str(span.source.text)  # type: ignore[attr-defined]


def test_lines_lead_to_the_template(helm: str, here: Path) -> None:
    write(here, FILES)
    reading = built(ChartRender("web", "my"), helm=helm)
    template = "web/templates/policy.yaml"
    assert places(reading) == (f"{template}:2:1", "apiVersion: networking.k8s.io/v1")
    assert places(reading, "spec", "policyTypes", 0) == (f"{template}:12:7", "Ingress")
    assert places(reading, "metadata", "name") == (f"{template}:5:9", "{{ .Release.Name }}-{{ .Values.name }}")
    where, text = places(reading, "spec", "ingress", 0)
    assert (where, text) == (f"{template}:9:7", "ports:")


def test_a_line_that_a_template_has_twice_is_shown_as_rendered(helm: str, here: Path) -> None:
    ports = "    - ports:\n        - port: 80\n    - ports:\n        - port: 80\n"
    template = TEMPLATE.replace("    - ports:\n        - port: {{ .Values.port }}\n", ports)
    write(here, {**FILES, "web/templates/policy.yaml": template})
    reading = built(ChartRender("web", "my"), helm=helm)
    where, text = places(reading, "spec", "ingress", 1, "ports", 0, "port")
    assert (where, text) == ("<helm template web: web/templates/policy.yaml>:13:17", "80")


def test_documents_of_one_template_have_their_own_lines(helm: str, here: Path) -> None:
    write(here, {**FILES, "web/templates/policy.yaml": f"{POLICY}---\n{POLICY.replace('name: web', 'name: two')}"})
    reading = built(ChartRender("web", "my"), helm=helm)
    by_name = {
        document.name: str(document.locate("spec", "ingress", 0, "ports", 0, "port")) for document in reading.documents
    }
    template = "web/templates/policy.yaml"
    assert by_name == {"web": f"{template}:10:13", "two": f"{template}:21:13"}


def test_notes_and_tests_that_fail_stop_no_release(helm: str, here: Path) -> None:
    hook = "apiVersion: v1\nkind: Pod\nmetadata: {annotations: {helm.sh/hook: test}}\n"
    write(here, {**FILES, "web/templates/NOTES.txt": "{{ fail `image must be set` }}"})
    write(here, {"web/templates/tests/connection.yaml": hook + "spec: {{ .Values.no.such.value }}\n"})
    reading = built(ChartRender("web", "shop"), helm=helm)
    assert (names(reading), left_out(reading)) == (["default/shop-own"], [])


def test_hooks_and_tests_are_no_part_of_a_release(helm: str, here: Path) -> None:
    for hook in ("test", "pre-install"):
        pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {hook}, annotations: {{helm.sh/hook: {hook}}}}}\n"
        write(here, {**FILES, f"web/templates/{hook}.yaml": pod})
    assert names(built(ChartRender("web", "my"), helm=helm)) == ["default/my-own"]


@pytest.mark.parametrize(
    ("annotations", "stays"),
    [
        ("helm.sh/hook: pre-install", True),
        ('"helm.sh/hook": "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation', True),
        ("helm.sh/hook: post-install, helm.sh/hook-delete-policy: hook-succeeded", False),
        ("helm.sh/hook: pre-delete", False),
        ("helm.sh/hook: test", False),
        ("note: 'a helm.sh/hook: test'", True),
    ],
)
def test_a_policy_that_is_a_hook_stays_unless_helm_deletes_it(
    annotations: str, stays: bool, helm: str, here: Path
) -> None:
    hook = POLICY.replace("name: web\n", f"name: hook\n  annotations: {{{annotations}}}\n")
    write(here, {**FILES, "web/templates/hook.yaml": hook})
    assert ("default/hook" in names(built(ChartRender("web", "my"), helm=helm))) is stays


@pytest.mark.parametrize(
    ("condition", "asks"),
    [
        ('lookup "v1" "Namespace" "" "shop"', "lookup"),
        ('not (lookup "v1" "Namespace" "" "shop")', "lookup"),
        (".Release.IsUpgrade", ".Release.IsUpgrade"),
        ('.Capabilities.APIVersions.Has (printf "%s/%s" "a.example" "v1")', ".Capabilities.APIVersions"),
        ('has "a.example/v1" .Capabilities.APIVersions', ".Capabilities.APIVersions"),
        ('not (.Capabilities.APIVersions.Has "a.example/v1")', ".Capabilities.APIVersions"),
        ('include "outer" .', "lookup"),
        ('.Capabilities.APIVersions.Has "a.example/v1"', None),
        ('.Capabilities.APIVersions.Has "networking.k8s.io/v1"', None),
        ('eq .Values.lookup "yes"', None),
    ],
)
def test_policies_that_depend_on_the_cluster_are_named(condition: str, asks: str | None, helm: str, here: Path) -> None:
    inner = '{{- define "inner" -}}{{- if lookup "v1" "Secret" "" "" -}}yes{{- end -}}{{- end -}}\n'
    write(here, {"web/Chart.yaml": CHART, "web/values.yaml": "lookup: 'no'\n"})
    write(
        here, {"web/templates/_x.tpl": f'{inner}{{{{- define "outer" -}}}}{{{{ include "inner" . }}}}{{{{- end -}}}}\n'}
    )
    write(here, {"web/templates/p.yaml": f"{{{{- if {condition} }}}}\n{POLICY}{{{{- end }}}}\n"})
    kept = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
    write(here, {"web/templates/s.yaml": f'{{{{- if lookup "v1" "Secret" "" "s" }}}}\n{kept}{{{{- end }}}}\n'})
    left = left_out(built(ChartRender("web", "my"), helm=helm))
    where = ("policies of `web/templates/p.yaml`", "web/templates/p.yaml")
    assert left == ([(*where, f"`{asks}` depends on what is in the cluster")] if asks else [])


def test_a_library_chart_is_nothing_to_install(helm: str, here: Path) -> None:
    write(here, LIBRARY)
    reading = built(ChartRender("web/charts/common", "x"), helm=helm)
    assert (names(reading), left_out(reading)) == ([], [])


def test_vendored_charts_are_part_of_it(helm: str, here: Path) -> None:
    text = TEMPLATE.replace("{{ .Values.name }}", '{{ include "common.name" . }}')
    write(here, {**FILES, **LIBRARY, **_below("web/charts/sub", _chart("sub")), "web/templates/policy.yaml": text})
    write(here, _below("packed", _chart("packed")))
    with tarfile.open(here / "web/charts/packed-1.0.0.tgz", "w:gz") as archive:
        archive.add(here / "packed", "packed")
    write(here, {"web/Chart.yaml": _depends("name: sub", "name: packed", "name: common")})
    reading = built(ChartRender("web", "my"), helm=helm)
    assert (names(reading), left_out(reading)) == (["default/my-common", "default/packed", "default/sub"], [])
    where = {document.name: str(document.span) for document in reading.documents}
    assert where["sub"] == "web/charts/sub/templates/policy.yaml:1:1"
    assert where["packed"].startswith("<helm template web: web/charts/packed/templates/policy.yaml>:")


def test_a_chart_of_the_repository_is_taken_in(helm: str, here: Path) -> None:
    write(here, {**FILES, **_below("lib/near", _chart("near")), **_below("lib/far", _chart("far"))})
    near = _chart("near")["Chart.yaml"] + "dependencies: [{name: far, version: 1.0.0, repository: 'file://../far'}]\n"
    write(here, {"lib/near/Chart.yaml": near})
    write(here, {"web/Chart.yaml": _depends("name: near, alias: other, repository: 'file://../lib/near'")})
    reading = built(ChartRender("web", "my"), helm=helm)
    assert (names(reading), left_out(reading)) == (["default/far", "default/my-own", "default/near"], [])
    where = {document.name: str(document.span) for document in reading.documents}
    assert where["near"] == "lib/near/templates/policy.yaml:1:1"


def test_a_chart_of_the_repository_with_the_name_and_a_fitting_version_is_taken_in(helm: str, here: Path) -> None:
    old = {"Chart.yaml": "apiVersion: v2\nname: near\nversion: 0.9.0\n", "templates/policy.yaml": "{{ fail `old` }}"}
    write(here, {**FILES, **_below("lib/near", _chart("near")), **_below("old/near", old), **_below("lib/far", old)})
    remote = "repository: 'https://example.com'"
    chart = "".join(f"- {{name: {name}, version: '{version}', {remote}}}\n" for name, version in FAR)
    write(here, {"web/Chart.yaml": f"{CHART}dependencies:\n{chart}"})
    given = environment(ChartRender("web", "my"), helm=helm)
    reading = read_environment(replace(given, charts=("web", "lib/near", "old/near", "lib/far")))
    assert names(reading) == ["default/my-own", "default/near"]
    assert [what for what, _, _ in left_out(reading)] == [f"chart `{name}` of https://example.com" for name in MISSING]
    assert {str(document.span) for document in reading.documents} >= {"lib/near/templates/policy.yaml:1:1"}


FAR = (("near", "~1.0"), ("far", "*"), ("web", "1.0.0"))
MISSING = ("far", "web")  # the chart in `lib/far` has another name, and no chart contains itself


def test_charts_that_need_each_other_have_an_end(helm: str, here: Path) -> None:
    other = FILES["web/Chart.yaml"].replace("web", "other")
    needs = "dependencies: [{{name: {}, version: ^1.0.0, repository: 'https://example.com'}}]\n"
    write(here, {**FILES, **_below("other", _chart("other"))})
    write(here, {"web/Chart.yaml": CHART + needs.format("other"), "other/Chart.yaml": other + needs.format("web")})
    reading = read_environment(replace(environment(ChartRender("web", "my"), helm=helm), charts=("other", "web")))
    assert "default/other" in names(reading)


def test_a_chart_that_would_be_fetched_is_left_out_unless_it_is_off(helm: str, here: Path) -> None:
    repository = "repository: 'https://example.com'"
    write(here, FILES)
    write(
        here,
        {
            "web/Chart.yaml": _depends(
                f"name: redis, condition: redis.enabled, {repository}", f"name: pg, tags: [db], {repository}"
            )
        },
    )
    why = "it would have to be fetched into charts/"
    redis = ("chart `redis` of https://example.com", "web/Chart.yaml:5", why)
    database = ("chart `pg` of https://example.com", "web/Chart.yaml:6", why)
    assert left_out(built(ChartRender("web", "my"), helm=helm)) == [redis, database]
    off: dict[str, Plain] = {"redis": {"enabled": False}, "tags": {"db": False}}
    reading = built(ChartRender("web", "my", values=(off,)), helm=helm)
    assert (names(reading), left_out(reading)) == (["default/my-own"], [])
    on = ChartRender("web", "my", values=(off, {"redis": {"enabled": True}}))
    assert left_out(built(on, helm=helm)) == [redis]


def test_a_missing_chart_of_a_vendored_one_is_named_too(helm: str, here: Path) -> None:
    write(here, {**FILES, **_below("web/charts/sub", _chart("sub")), "web/Chart.yaml": _depends("name: sub")})
    inner = "dependencies: [{name: far, version: 1.0.0, repository: 'https://example.com', condition: far.on}]\n"
    write(here, {"web/charts/sub/Chart.yaml": _chart("sub")["Chart.yaml"] + inner})
    reading = built(ChartRender("web", "my"), helm=helm)
    assert [what for what, _, _ in left_out(reading)] == ["chart `far` of https://example.com"]
    assert names(reading) == ["default/my-own", "default/sub"]
    off: dict[str, Plain] = {"sub": {"far": {"on": False}}}
    assert left_out(built(ChartRender("web", "my", values=(off,)), helm=helm)) == []


def test_the_first_version_of_charts_has_its_dependencies_elsewhere(helm: str, here: Path) -> None:
    requirements = "dependencies: [{name: x, version: 1.0.0, repository: 'https://example.com'}]\n"
    write(
        here,
        {
            **FILES,
            "web/Chart.yaml": "apiVersion: v1\nname: web\nversion: 1.0.0\n",
            "web/requirements.yaml": requirements,
        },
    )
    reading = built(ChartRender("web", "my"), helm=helm)
    assert names(reading) == ["default/my-own"]
    assert [where for _, where, _ in left_out(reading)] == ["web/requirements.yaml:1"]


def test_a_chart_that_fails_is_left_out_with_the_words_of_helm(helm: str, here: Path) -> None:
    write(here, {**FILES, "web/templates/x.yaml": '{{ required "give a host" .Values.host }}', "a.yaml": "- 1\n"})
    ((what, where, why),) = left_out(built(ChartRender("web", "my"), helm=helm))
    assert (what, where) == ("chart `web`", "web/Chart.yaml")
    assert "give a host" in why
    assert "eastgate-" not in why
    ((_, _, why),) = left_out(built(ChartRender("none", "my"), helm=helm))
    assert why == "there is no chart in it"


def test_extensions_that_templates_ask_for_count_as_installed(helm: str, here: Path) -> None:
    asks = '{{{{- if .Capabilities.APIVersions.Has "{}" }}}}\n{}{{{{- end }}}}\n'
    apis = {"istio": "security.istio.io/v1", "routes": "gateway.networking.k8s.io/v1/HTTPRoute"}
    apis["other"] = "autoscaling.k8s.io/v1"
    for name, api in apis.items():
        write(here, {f"web/templates/{name}.yaml": asks.format(api, POLICY.replace("name: web", f"name: {name}"))})
    write(here, {"web/Chart.yaml": CHART})
    assert names(built(ChartRender("web", "my"), helm=helm)) == ["default/istio", "default/routes"]


def test_values_that_are_not_there_are_named(helm: str, here: Path) -> None:
    write(here, FILES)
    reading = built(ChartRender("web", "my", None, ("none.yaml",)), helm=helm)
    assert names(reading) == ["default/my-own"]
    assert left_out(reading) == [("values `none.yaml` of chart `web`", "web/Chart.yaml", "there is no such file")]


def test_without_helm_only_definitions_are_read(here: Path) -> None:
    write(here, {**FILES, "web/crds/policy.yaml": POLICY})
    reading = built(ChartRender("web", "my"))
    assert names(reading) == ["default/web"]
    assert places(reading) == ("web/crds/policy.yaml:1:1", "apiVersion: networking.k8s.io/v1")
    assert left_out(reading) == [
        ("chart `web`", "web/Chart.yaml", "there is no helm program; give one with --helm PATH")
    ]


def test_charts_of_a_kustomization(helm: str, kustomize: Path) -> None:
    write(kustomize, {f"prod/charts/{name}": text for name, text in FILES.items()})
    local = "- {name: web, releaseName: my, namespace: inner, valuesFile: v.yaml, valuesInline: {name: inline}}\n"
    remote = "- {name: far, repo: 'https://example.com', version: 1.0.0}\n"
    write(
        kustomize,
        {"prod/kustomization.yaml": f"namespace: shop\nhelmCharts:\n{local}{remote}", "prod/v.yaml": "port: 7\n"},
    )
    reading = built(KustomizeBuild("prod"), helm=helm)
    assert names(reading) == ["shop/my-inline"]
    assert left_out(reading) == [("chart `far`", "prod/kustomization.yaml:4", "it would have to be fetched")]
    assert "port: 7\n" in _text(reading.documents[0].span.built)
    template = "prod/charts/web/templates/policy.yaml"
    assert places(reading) == (f"{template}:2:1", "apiVersion: networking.k8s.io/v1")
    assert places(reading, "spec", "policyTypes", 0) == (f"{template}:12:7", "Ingress")
    without = built(KustomizeBuild("prod"))
    assert [what for what, _, _ in left_out(without)] == ["chart `web`", "chart `far`"]


def test_a_chart_that_kustomize_has_fetched_is_rendered(helm: str, kustomize: Path) -> None:
    write(kustomize, {f"charts/web-1.0.0/{name}": text for name, text in FILES.items()})
    entry = "- {name: web, repo: 'https://example.com', version: 1.0.0, releaseName: my}\n"
    write(kustomize, {"kustomization.yaml": f"helmCharts:\n{entry}"})
    reading = built(KustomizeBuild("."), helm=helm)
    assert (names(reading), left_out(reading)) == (["default/my-own"], [])
