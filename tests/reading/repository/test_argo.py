"""The objects that Applications of Argo CD deploy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from eastgate.reading.manifests import Plain
from eastgate.reading.repository import ChartRender, EntryKind, Environment, Files, KustomizeBuild
from tests.reading.repository.trees import application, found, kustomization, named, policy

_CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"


def _set(generators: str, name: str, path: str, more: str = "") -> str:
    return (
        f"apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: set}}\nspec:\n"
        f"  generators: {generators}\n  template:\n    metadata: {{name: '{name}'}}\n"
        f"    spec:\n      source: {{path: '{path}', repoURL: 'https://git.example/a/b'}}\n{more}"
    )


def test_an_application_is_an_environment_with_its_namespace(here: Path) -> None:
    options = "{namespace: own, namePrefix: a-}"
    environments = named(
        found(
            here,
            {
                "apps/one.yaml": application("one", "{path: one}", "first"),
                "apps/two.yaml": application("two", f"{{path: two, kustomize: {options}}}", "second"),
                "one/policy.yaml": policy("one"),
                "two/kustomization.yaml": kustomization("policy.yaml"),
                "two/policy.yaml": policy("two"),
            },
        )
    )
    assert environments.keys() == {"one", "two"}
    assert environments["one"].namespace == "first"
    assert environments["one"].parts == (Files(("one/policy.yaml",), "first"),)
    build = KustomizeBuild("two", namespace="own", default_namespace="second", overlay={"namePrefix": "a-"})
    assert environments["two"].parts == (build,)


def test_a_folder_is_read_as_its_options_say(here: Path) -> None:
    files = {f"app/{name}": policy("p") for name in ("a.yaml", "b.json.yaml", "sub/c.yaml", "sub/skip.yaml")}
    options = "{recurse: true, include: '{*.yaml,x}', exclude: '*skip*'}"
    files["k.yaml"] = application("k", f"{{path: app, directory: {options}}}")
    (environment,) = found(here, files)
    assert environment.parts == (Files(("app/a.yaml", "app/b.json.yaml", "app/sub/c.yaml"), "shop"),)


def test_without_recurse_only_the_folder_itself_is_read(here: Path) -> None:
    files = {"k.yaml": application("k", "{path: app}"), "app/a.yaml": policy("a"), "app/sub/b.yaml": policy("b")}
    environments = named(found(here, files))
    assert environments["k"].parts == (Files(("app/a.yaml",), "shop"),)
    assert environments["sub"].parts == (Files(("app/sub/b.yaml",)),)


def test_parameters_win_over_values(here: Path) -> None:
    parameters = "[{name: c.d, value: '3'}, {name: e, value: '4', forceString: true}]"
    helm = f"{{releaseName: r, values: 'a: 1', valuesObject: {{b: 2}}, parameters: {parameters}}}"
    (environment,) = found(
        here, {"k.yaml": application("k", f"{{path: chart, helm: {helm}}}"), "chart/Chart.yaml": _CHART}
    )
    values: tuple[Mapping[str, Plain], ...] = ({"a": 1}, {"b": 2}, {"c": {"d": 3}, "e": "4"})
    assert environment.parts == (ChartRender("chart", "r", "shop", (), values),)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{path: ../out}", "its path `../out` leads out of the repository"),
        ("{path: gone}", "the folder `gone` is not in this repository"),
        (
            "{chart: redis, targetRevision: 1.2.3}",
            "the chart `redis` 1.2.3 is from a chart repository: charts are not fetched",
        ),
        ("{path: ., repoURL: 'https://git.example/a/other'}", "it is in another repository, which is not fetched"),
        ("{}", "it has no source with a path"),
        ("{path: app, plugin: {name: x}}", "`app` is rendered by a plugin of Argo CD"),
    ],
)
def test_missing_parts_are_left_out(here: Path, source: str, why: str) -> None:
    environments = found(here, {"k.yaml": application("k", source), "app/policy.yaml": policy("p")})
    assert [(gap.what, gap.where, gap.why) for gap in environments[0].left_out] == [("Application k", "k.yaml:1", why)]
    assert environments[0].parts == ()


def test_the_root_of_the_repository_is_recognized_by_its_name(here: Path) -> None:
    (here / ".git" / "config").write_text('[remote "origin"]\n\turl = git@git.example:team/shop.git\n')
    source = "{path: ., repoURL: 'https://mirror.example/x/shop', directory: {include: p.yaml}}"
    environment = found(here, {"k.yaml": application("k", source), "p.yaml": policy("p")})[0]
    assert environment.parts == (Files(("p.yaml",), "shop"),)


@pytest.mark.parametrize(
    ("generators", "name", "path", "expected"),
    [
        ("[{list: {elements: [{e: a}, {e: b}]}}]", "x-{{e}}", "apps/{{ e }}", {"x-a": "apps/a", "x-b": "apps/b"}),
        ("[{list: {elements: [{e: a}]}}]", "{{ .e }}", "apps/{{.e}}", {"a": "apps/a"}),
        ("[{git: {directories: [{path: apps/*}]}}]", "{{path.basename}}", "{{path}}", {"a": "apps/a", "b": "apps/b"}),
        (
            "[{git: {directories: [{path: 'apps/**'}, {path: apps/a, exclude: true}]}}]",
            "{{path[1]}}",
            "{{path}}",
            {"b": "apps/b"},
        ),
        (
            "[{git: {files: [{path: 'env/*.yaml'}]}}]",
            "{{app.name}}",
            "apps/{{app.name}}",
            {"a": "apps/a", "b": "apps/b"},
        ),
        (
            "[{matrix: {generators: [{git: {directories: [{path: apps/a}]}}, {list: {elements: [{e: x}, {e: z}]}}]}}]",
            "{{path.basename}}-{{e}}",
            "{{path}}",
            {"a-x": "apps/a", "a-z": "apps/a"},
        ),
        (
            "[{merge: {mergeKeys: [e], generators: [{list: {elements: [{e: a, n: one}, {e: b, n: b}]}},"
            " {list: {elements: [{e: a, n: changed}]}}]}}]",
            "{{n}}",
            "apps/{{e}}",
            {"changed": "apps/a", "b": "apps/b"},
        ),
    ],
)
def test_generators_give_applications(
    here: Path, generators: str, name: str, path: str, expected: dict[str, str]
) -> None:
    files = {
        "set.yaml": _set(generators, name, path),
        "apps/a/p.yaml": policy("a"),
        "apps/b/p.yaml": policy("b"),
        "env/one.yaml": "app: {name: a}\n",
        "env/two.yaml": "app: {name: b}\n",
    }
    environments = [each for each in found(here, files) if each.kind.value == "Argo CD"]
    assert {each.name: each.parts for each in environments} == {
        name: (Files((f"{folder}/p.yaml",)),) for name, folder in expected.items()
    }


def test_a_generator_that_asks_others_is_left_out(here: Path) -> None:
    files = {
        "set.yaml": _set("[{clusters: {}}]", "{{name}}-x", "apps/{{metadata.labels.app}}"),
        "apps/a/p.yaml": policy("a"),
    }
    environment = found(here, files)[0]
    assert environment.name == "set"
    assert [gap.why for gap in environment.left_out] == ["its generator asks Argo CD for its clusters"]


def test_applications_that_a_folder_holds_belong_to_the_one_that_deploys_it(here: Path) -> None:
    (environment,) = found(
        here,
        {
            "root.yaml": application("root", "{path: apps}", "argocd"),
            "apps/web.yaml": application("web", "{path: web}", "web"),
            "apps/self.yaml": application("root-again", "{path: apps}", "argocd"),
            "web/policy.yaml": policy("web"),
        },
    )
    assert environment.name == "root"
    assert environment.parts == (Files(("web/policy.yaml",), "web"),)


def _left_out(environment: Environment) -> list[tuple[str, str]]:
    return [(gap.what, gap.why) for gap in environment.left_out]


def test_an_app_of_apps_is_an_environment_for_each_cluster(here: Path) -> None:
    def on(name: str, destination: str) -> str:
        return application(name, f"{{path: {name}}}").replace("namespace: shop", f"namespace: shop, {destination}")

    files = {"root.yaml": application("root", "{path: apps}"), "apps/kustomization.yaml": kustomization("all.yaml")}
    files["apps/all.yaml"] = "---\n".join(
        (
            on("prod", "server: 'https://prod.example.com:6443'"),
            on("more", "server: 'https://prod.example.com:6443'"),
            on("staging", "name: staging"),
            on("here", "name: in-cluster"),
            on("too", "server: 'https://kubernetes.default.svc'"),
        )
    )
    files |= {f"{name}/p.yaml": policy(name) for name in ("prod", "more", "staging", "here", "too")}
    environments = named(found(here, files))
    assert {name: [getattr(part, "paths", ()) for part in each.parts] for name, each in environments.items()} == {
        "in-cluster": [(), ("here/p.yaml",), ("too/p.yaml",)],
        "prod.example.com": [("prod/p.yaml",), ("more/p.yaml",)],
        "staging": [("staging/p.yaml",)],
    }


def test_one_other_cluster_is_no_choice(here: Path) -> None:
    files = {"root.yaml": application("root", "{path: apps}"), "prod/p.yaml": policy("p")}
    files["apps/a.yaml"] = application("a", "{path: prod}").replace("namespace: shop", "name: prod")
    assert [environment.name for environment in found(here, files)] == ["root"]


@pytest.mark.parametrize("names", [("prod",), ("prod", "staging")])
def test_an_application_is_read_as_its_overlay_builds_it(names: tuple[str, ...], here: Path) -> None:
    files = {
        "argocd/base/kustomization.yaml": kustomization("a.yaml"),
        "argocd/base/a.yaml": application("a", "{path: shop-base}"),
        "shop-base/p.yaml": policy("base"),
    }
    for name in names:
        operation = f"[{{op: replace, path: /spec/source/path, value: shop-{name}}}]"
        patch = f"patches:\n- target: {{kind: Application}}\n  patch: '{operation}'\n"
        files[f"argocd/{name}/kustomization.yaml"] = kustomization("../base", more=patch)
        files[f"shop-{name}/p.yaml"] = policy(name)
    argo = [each for each in found(here, files) if each.kind is EntryKind.ARGO]
    assert [each.name for each in argo] == (["a"] if len(names) == 1 else ["prod/a", "staging/a"])
    assert [part for each in argo for part in each.parts] == [Files((f"shop-{name}/p.yaml",), "shop") for name in names]


def test_replacements_in_an_application_are_named(here: Path) -> None:
    def left_out(kind: str) -> list[tuple[str, str]]:
        target = f"{{select: {{kind: {kind}}}, fieldPaths: [spec.source.path]}}"
        more = f"replacements: [{{source: {{kind: ConfigMap, name: x}}, targets: [{target}]}}]\n"
        files = {"apps/kustomization.yaml": kustomization("a.yaml", more=more), "one/p.yaml": policy("one")}
        files["apps/a.yaml"] = application("a", "{path: one}")
        return _left_out(named(found(here, files))["a"])

    why = "`replacements` of `apps` may change it, which is not followed"
    assert left_out("Application") == [("Application a", why)]
    assert left_out("Deployment") == []


def test_a_folder_that_another_repository_may_have_is_named(here: Path) -> None:
    files = {
        f"apps/{name}.yaml": application(name, f"{{path: {name}, repoURL: 'https://git.example/own.git'}}")
        for name in "ab"
    }
    files["apps/c.yaml"] = application("c", "{path: c, repoURL: 'https://git.example/other.git'}")
    environments = named(found(here, files | {f"{name}/p.yaml": policy(name) for name in "abc"}))
    assert [environments[name].left_out for name in "ab"] == [(), ()]
    why = "it names the repository `other`, which may be another one: `c` of this one is read"
    assert _left_out(environments["c"]) == [("Application c", why)]
    assert environments["c"].parts == (Files(("c/p.yaml",), "shop"),)


def test_values_of_another_repository_are_not_read_from_this_one(here: Path) -> None:
    def application_with(url: str) -> str:
        chart = "{path: web, repoURL: 'https://git.example/own', helm: {valueFiles: [$v/prod.yaml]}}"
        return application("a", "{}").replace("source: {}", f"sources: [{chart}, {{repoURL: '{url}', ref: v}}]")

    files = {"web/Chart.yaml": _CHART, "prod.yaml": "a: 1\n"}
    (own,) = found(here, {**files, "a.yaml": application_with("git@git.example:fork/own.git")})
    assert isinstance(own.parts[0], ChartRender)
    assert own.parts[0].value_files == ("prod.yaml",)
    (other,) = found(here, {**files, "a.yaml": application_with("https://git.example/values")})
    assert _left_out(other) == [("values of Application a", "the values `$v/prod.yaml` are not in this repository")]


def test_parameters_may_be_files(here: Path) -> None:
    helm = "{namespace: own, fileParameters: [{name: a.b, path: files/x.txt}, {name: c, path: none.txt}]}"
    files = {
        "web/Chart.yaml": _CHART,
        "web/files/x.txt": "true",
        "a.yaml": application("a", f"{{path: web, helm: {helm}}}"),
    }
    (environment,) = found(here, files)
    assert environment.parts == (ChartRender("web", "a", "own", (), ({"a": {"b": "true"}},)),)
    why = "the file `none.txt` of the parameter `c` is not in this repository"
    assert _left_out(environment) == [("Application a", why)]


@pytest.mark.parametrize(
    ("name", "options", "is_named"),
    [
        ("x.jsonnet", "{}", True),
        ("x.libsonnet", "{}", False),
        ("x.jsonnet", "{exclude: '*.jsonnet'}", False),
        ("sub/x.jsonnet", "{}", False),
        ("sub/x.jsonnet", "{recurse: true}", True),
    ],
)
def test_jsonnet_beside_manifests_is_named(name: str, options: str, is_named: bool, here: Path) -> None:
    files = {
        "app/p.yaml": policy("p"),
        f"app/{name}": "{}",
        "a.yaml": application("a", f"{{path: app, directory: {options}}}"),
    }
    (environment,) = found(here, files)
    assert _left_out(environment) == ([("Application a", "`app` has Jsonnet")] if is_named else [])


def test_unsupported_changes_of_an_applicationset_are_named(here: Path) -> None:
    files = {"one/Chart.yaml": _CHART, "set.yaml": _set("[{list: {elements: [{p: one, v: '1'}]}}]", "x", "{{p}}")}
    (environment,) = found(here, files)
    assert environment.left_out == ()
    more = "        helm: {parameters: [{name: a, value: '{{ .v | quote }}'}]}\n"
    text = files["set.yaml"].replace("      source: {path: '{{p}}', repoURL: 'https://git.example/a/b'}\n", "")
    source = f"      source:\n        path: '{{{{p}}}}'\n        repoURL: 'https://git.example/a/b'\n{more}"
    (environment,) = found(here, {"set.yaml": text + source})
    assert _left_out(environment) == [("Application x", "its template has an expression that is not followed")]
    (environment,) = found(here, {"set.yaml": files["set.yaml"] + "  templatePatch: 'x'\n"})
    assert _left_out(environment) == [("Application x", "its templatePatch is not followed")]


def test_an_app_of_apps_patches_its_applications(here: Path) -> None:
    operation = "[{op: replace, path: /spec/source/path, value: two}]"
    patch = f"{{patches: [{{target: {{kind: Application}}, patch: '{operation}'}}]}}"
    files = {"root.yaml": application("root", f"{{path: apps, kustomize: {patch}}}")}
    files |= {"apps/kustomization.yaml": kustomization("a.yaml"), "apps/a.yaml": application("a", "{path: one}")}
    environments = named(found(here, {**files, "one/p.yaml": policy("one"), "two/p.yaml": policy("two")}))
    assert environments["root"].parts[1:] == (Files(("two/p.yaml",), "shop"),)
