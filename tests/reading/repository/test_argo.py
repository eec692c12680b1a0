"""What Applications of Argo CD deploy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from eastgate.reading.manifests import Plain
from eastgate.reading.repository import ChartRender, Files, KustomizeBuild
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
def test_what_is_not_here_is_left_out(here: Path, source: str, why: str) -> None:
    environments = found(here, {"k.yaml": application("k", source), "app/policy.yaml": policy("p")})
    assert [(gap.what, gap.where, gap.why) for gap in environments[0].left_out] == [("Application k", "k.yaml:1", why)]
    assert environments[0].parts == ()


def test_the_root_of_the_repository_is_meant_by_its_name(here: Path) -> None:
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
