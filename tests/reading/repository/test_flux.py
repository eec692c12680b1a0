"""The objects that a cluster gets through Flux."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.reading.repository import ChartRender, EntryKind, Environment, Files, KustomizeBuild
from tests.reading.repository.building import names, read_environment
from tests.reading.repository.trees import flux, found, kustomization, named, policy

_SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: flux-system}\ndata:\n"
_FROM = "postBuild:\n  substituteFrom:\n  - {kind: ConfigMap, name: settings}\n"


def _release(name: str, chart: str, spec: str = "", kind: str = "GitRepository") -> str:
    lines = "".join(f"  {line}\n" for line in spec.splitlines())
    return (
        f"apiVersion: helm.toolkit.fluxcd.io/v2beta1\nkind: HelmRelease\nmetadata: {{name: {name}, namespace: shop}}\n"
        f"spec:\n  chart:\n    spec:\n      chart: {chart}\n"
        f"      sourceRef: {{kind: {kind}, name: flux-system}}\n{lines}"
    )


def test_a_root_and_all_that_it_leads_to_are_one_environment(here: Path) -> None:
    environments = found(
        here,
        {
            "clusters/prod/a.yaml": flux("a", "./a"),
            "clusters/prod/b.yaml": flux("b", "b"),
            "a/ks.yaml": flux("inner", "./inner"),
            "inner/policy.yaml": policy("inner"),
            "b/kustomization.yaml": kustomization("policy.yaml"),
            "b/policy.yaml": policy("b"),
        },
    )
    assert [environment.name for environment in environments] == ["prod"]
    assert environments[0].parts == (Files(("inner/policy.yaml",)), KustomizeBuild("b"))


def test_each_cluster_has_its_own_variables(here: Path) -> None:
    files = {"app/kustomization.yaml": kustomization("policy.yaml"), "app/policy.yaml": policy("p")}
    for cluster in ("eu", "us"):
        files[f"clusters/{cluster}/app.yaml"] = flux("app", "./app", _FROM)
        files[f"clusters/{cluster}/settings.yaml"] = f"{_SETTINGS}  DOMAIN: {cluster}.example\n"
    environments = named(found(here, files))
    for name in ("eu", "us"):
        (build,) = [part for part in environments[name].parts if isinstance(part, KustomizeBuild)]
        assert build == KustomizeBuild("app", variables={"DOMAIN": f"{name}.example"}, substitute=True)


def test_a_variable_may_come_from_a_secret_that_is_not_encrypted(here: Path) -> None:
    data = "data: {A: aGVsbG8=, B: /w==}\nstringData: {C: 'ENC[x]'}\n"
    (environment,) = found(
        here,
        {
            "k.yaml": flux("k", "./app", "postBuild: {substituteFrom: [{kind: Secret, name: s}]}"),
            "app/kustomization.yaml": kustomization("secret.yaml"),
            "app/secret.yaml": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{data}",
        },
    )
    (build,) = environment.parts
    assert isinstance(build, KustomizeBuild)
    assert (dict(build.variables), build.hidden) == ({"A": "hello"}, ("B", "C"))


def test_a_source_of_variables_that_is_not_here_leaves_all_names_open(here: Path) -> None:
    (environment,) = found(here, {"k.yaml": flux("k", "./app", _FROM), "app/policy.yaml": policy("p")})
    assert environment.parts == (KustomizeBuild("app", substitute=True, hidden=None, resources=("app/policy.yaml",)),)


def test_no_cluster_has_the_variables_of_another_one(here: Path) -> None:
    files = {
        "app/kustomization.yaml": kustomization("policy.yaml"),
        "app/policy.yaml": policy("p"),
        "clusters/eu/app.yaml": flux("app", "./app", _FROM),
        "clusters/eu/settings.yaml": f"{_SETTINGS}  DOMAIN: eu.example\n",
        "clusters/us/app.yaml": flux("app", "./app", _FROM),
    }
    (build,) = [part for part in named(found(here, files))["us"].parts if isinstance(part, KustomizeBuild)]
    assert (build.variables, build.hidden) == ({}, None)


def test_a_config_map_may_be_generated(here: Path) -> None:
    generator = (
        "configMapGenerator:\n- name: settings\n  namespace: flux-system\n  envs: [a.env]\n  files: [F=f.txt]\n"
        "  literals: [L=1]\n"
    )
    (environment,) = found(
        here,
        {
            "k.yaml": flux("k", "./app", _FROM),
            "m.yaml": flux("m", "./meta"),
            "meta/kustomization.yaml": kustomization(more=generator),
            "meta/a.env": "# comment\nE=2\nexport X=3\n",
            "meta/f.txt": "4\n",
            "app/kustomization.yaml": kustomization("policy.yaml"),
            "app/policy.yaml": policy("p"),
        },
    )
    builds = {part.folder: part for part in environment.parts if isinstance(part, KustomizeBuild)}
    assert dict(builds["app"].variables) == {"E": "2", "X": "3", "F": "4", "L": "1"}


def test_an_own_variable_wins_and_has_no_line_breaks(here: Path) -> None:
    spec = f'{_FROM}  substitute: {{DOMAIN: "b\\nc", FLAG: true}}'
    (environment,) = found(
        here,
        {
            "k.yaml": flux("k", "./app", spec),
            "app/kustomization.yaml": kustomization("settings.yaml"),
            "app/settings.yaml": f"{_SETTINGS}  DOMAIN: a\n",
        },
    )
    (build,) = environment.parts
    assert isinstance(build, KustomizeBuild)
    assert dict(build.variables) == {"DOMAIN": "bc", "FLAG": "true"}


def test_a_parent_changes_its_children(here: Path) -> None:
    parent = (
        "targetNamespace: apps\npatches:\n"
        "- patch: '[{op: add, path: /spec/targetNamespace, value: shop}]'\n"
        "  target: {kind: Kustomization, name: ch.*}\n"
        "postBuild: {substitute: {FOLDER: app}}"
    )
    (environment,) = found(
        here,
        {
            "clusters/x/root.yaml": flux("root", "./children", parent),
            "children/child.yaml": flux("child", "./${FOLDER}"),
            "app/kustomization.yaml": kustomization("policy.yaml"),
            "app/policy.yaml": policy("p"),
        },
    )
    assert KustomizeBuild("app", namespace="shop") in environment.parts


def test_a_local_chart_is_rendered_with_the_values_of_its_release(here: Path) -> None:
    values = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: v, namespace: shop}\n"
    values += "data: {values.yaml: 'a: 1', port: '80'}\n"
    spec = (
        "targetNamespace: prod\nvalues: {b: 2}\nvaluesFrom:\n- {kind: ConfigMap, name: v}\n"
        "- {kind: ConfigMap, name: v, valuesKey: port, targetPath: 'service.ports[0].port'}\n"
        "- {kind: Secret, name: none, optional: true}\n"
    )
    (environment,) = found(
        here,
        {
            "clusters/x/k.yaml": flux("k", "./apps"),
            "apps/release.yaml": _release("web", "./chart", spec) + "---\n" + values,
            "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        },
    )
    chart = ChartRender("chart", "prod-web", "prod", (), ({"a": 1}, {"service": {"ports": [{"port": 80}]}}, {"b": 2}))
    assert environment.parts == (Files(("apps/release.yaml",)), chart)
    (gap,) = environment.left_out  # it may be in the cluster: with `optional`, the release works without it
    assert (gap.what, gap.can_decide) == ("values of HelmRelease shop/web", True)


def test_missing_parts_of_a_release_are_left_out(here: Path) -> None:
    (environment,) = found(
        here,
        {
            "a.yaml": _release("gone", "./nowhere"),
            "b.yaml": _release("fetched", "redis", kind="HelmRepository"),
            "c.yaml": _release("fixed", "./chart", "valuesFrom: [{kind: Secret, name: s}]\npostRenderers: [{}]\n"),
            "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        },
    )
    assert [(gap.what, gap.where) for gap in environment.left_out] == [
        ("HelmRelease shop/gone", "a.yaml:1"),
        ("HelmRelease shop/fetched", "b.yaml:1"),
        ("values of HelmRelease shop/fixed", "c.yaml:1"),
        ("postRenderers of HelmRelease shop/fixed", "c.yaml:1"),
    ]
    assert all(gap.can_decide for gap in environment.left_out)


def test_a_part_of_a_checkout_finds_the_rest_of_it(here: Path) -> None:
    files = {"clusters/x/k.yaml": flux("k", "./app"), "app/policy.yaml": policy("p")}
    (environment,) = found(here, files, "clusters/x")
    assert environment.parts == (Files(("app/policy.yaml",)),)
    assert names(read_environment(environment)) == ["default/p"]


def test_an_artifact_may_be_made_of_a_part_of_the_repository(here: Path) -> None:
    text = flux("k", "./apps/x").replace("GitRepository", "OCIRepository")
    files = {"kubernetes/clusters/x/k.yaml": text, "kubernetes/apps/x/policy.yaml": policy("p")}
    (environment,) = found(here, files)
    assert environment.parts == (Files(("kubernetes/apps/x/policy.yaml",)),)


def test_circles_end(here: Path) -> None:
    (environment,) = found(
        here,
        {
            "a/k.yaml": flux("a", "./b"),
            "b/k.yaml": flux("b", "./a"),
            "b/policy.yaml": policy("p"),
        },
    )
    assert environment.parts == (Files(("b/policy.yaml",)),)


def _left_out(environment: Environment) -> list[tuple[str, str]]:
    return [(gap.what, gap.why) for gap in environment.left_out]


_PATCH = "patches:\n- target: {kind: Kustomization}\n  patch: '[{op: replace, path: /spec/path, value: ./NAME}]'\n"


@pytest.mark.parametrize("clusters", [("prod",), ("prod", "staging")])
def test_a_kustomization_is_read_as_the_overlay_of_its_cluster_builds_it(clusters: tuple[str, ...], here: Path) -> None:
    files = {
        "clusters/base/kustomization.yaml": kustomization("apps.yaml"),
        "clusters/base/apps.yaml": flux("apps", "./base"),
        "base/p.yaml": policy("base"),
    }
    for name in clusters:
        overlay = kustomization("../base", more=_PATCH.replace("NAME", name))
        files |= {f"clusters/{name}/kustomization.yaml": overlay, f"{name}/p.yaml": policy(name)}
    environments = named(found(here, files))
    for name in clusters:
        assert environments[name].parts == (KustomizeBuild(f"clusters/{name}"), Files((f"{name}/p.yaml",)))
    assert "base" not in environments or environments["base"].kind is EntryKind.FOLDER


def test_a_patch_is_for_its_namespace_and_version(here: Path) -> None:
    for target, path in (
        ("namespace: elsewhere", "one"),
        ("version: v2", "one"),
        ("namespace: flux-system", "two"),
        ("namespace: flux.*, version: v1", "two"),
    ):
        more = _PATCH.replace("{kind: Kustomization", f"{{kind: Kustomization, {target}").replace("NAME", "two")
        files = {"c/kustomization.yaml": kustomization("k.yaml", more=more), "c/k.yaml": flux("k", "./one")}
        files |= {"one/p.yaml": policy("one"), "two/p.yaml": policy("two")}
        environment = named(found(here, files))["c"]
        assert environment.parts[1:] == (Files((f"{path}/p.yaml",)),), target


def test_unsupported_changes_of_a_build_are_named(here: Path) -> None:
    why = "`{}` of `c` may change it, which is not followed"
    target = "{select: {kind: Kustomization}, fieldPaths: [spec.path]}"
    operations = "'[{op: move, from: /spec/x, path: /spec/path}]'"
    patch = "a patch cannot be read, which may change what a Helm chart deploys"
    cases = {
        f"replacements: [{{source: {{kind: A}}, targets: [{target}]}}]\n": (
            "Kustomization flux-system/k",
            why.format("replacements"),
        ),
        "replacements: [{path: r.yaml}]\n": ("Kustomization flux-system/k", why.format("replacements")),
        "transformers: [t.yaml]\n": ("Kustomization flux-system/k", why.format("transformers")),
        f"patches: [{{target: {{kind: Kustomization}}, patch: {operations}}}]\n": ("the patches of `c`", patch),
    }
    for more, expected in cases.items():
        files = {"c/kustomization.yaml": kustomization("k.yaml", more=more), "c/k.yaml": flux("k", "./one")}
        (environment,) = found(here, {**files, "one/p.yaml": policy("one"), "c/r.yaml": f"- targets: [{target}]\n"})
        assert _left_out(environment) == [expected], more


def test_variables_that_a_build_may_change_are_open(here: Path) -> None:
    target = "{select: {kind: ConfigMap}, fieldPaths: [data.DOMAIN]}"
    more = f"replacements: [{{source: {{kind: ConfigMap, name: x}}, targets: [{target}]}}]\n"
    files = {"k.yaml": flux("k", "./app", _FROM), "m.yaml": flux("m", "./meta"), "app/p.yaml": policy("p")}
    files |= {"meta/kustomization.yaml": kustomization("s.yaml", more=more), "meta/s.yaml": f"{_SETTINGS}  DOMAIN: a\n"}
    (environment,) = found(here, files)
    builds = {part.folder: part for part in environment.parts if isinstance(part, KustomizeBuild)}
    assert (builds["app"].variables, builds["app"].hidden) == ({}, None)


def test_suspended_deployments_and_those_to_an_unnamed_cluster_are_read_and_named(here: Path) -> None:
    suspended = "it is suspended: what it deployed before may be something else"
    elsewhere = "it deploys to another cluster, which its kubeConfig names"
    for spec, why in (("suspend: true", suspended), ("kubeConfig: {secretRef: {}}", elsewhere)):
        (environment,) = found(here, {"k.yaml": flux("k", "./app", spec), "app/p.yaml": policy("p")})
        assert environment.parts == (Files(("app/p.yaml",)),)
        assert _left_out(environment) == [("Kustomization flux-system/k", why)]
        chart = {"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n"}
        release = _release("web", "./chart", spec)
        (environment,) = found(
            here, {**chart, "k.yaml": flux("k", "./app"), "app/r.yaml": release, "app/p.yaml": "a: 1\n"}
        )
        assert _left_out(environment) == [("HelmRelease shop/web", why)]
        for name in ("app/p.yaml", "app/r.yaml", "chart/Chart.yaml"):
            Path(name).unlink()


def _spoke(namespace: str, name: str, path: str, spec: str = "") -> str:
    config = "kubeConfig: {secretRef: {name: kubeconfig}}\n"
    return flux(name, path, config + spec).replace("namespace: flux-system}", f"namespace: {namespace}}}", 1)


def test_what_has_a_kubeconfig_is_an_environment_of_its_own(here: Path) -> None:
    release = _release("web", "./chart", "kubeConfig: {secretRef: {name: kubeconfig}}")
    environments = found(
        here,
        {
            "hub/prod.yaml": f"{_spoke('prod', 'app', './app')}---\n{_spoke('prod', 'more', './more')}",
            "hub/staging.yaml": _spoke("staging", "app", "./app"),
            "hub/own.yaml": flux("own", "./own"),
            "own/policy.yaml": policy("own"),
            "own/release.yaml": release,
            "app/policy.yaml": policy("app"),
            "more/ks.yaml": flux("inner", "./inner"),
            "inner/policy.yaml": policy("inner"),
            "chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        },
    )
    parts = {environment.name: environment.parts for environment in environments}
    assert parts == {
        "hub": (Files(("own/policy.yaml",)),),
        "prod": (Files(("app/policy.yaml",)), Files(("inner/policy.yaml",))),
        "staging": (Files(("app/policy.yaml",)),),
        "shop": (ChartRender("chart", "web", "shop"),),
    }
    assert not any(environment.left_out for environment in environments)


def test_a_remote_cluster_has_no_variables_of_the_hub(here: Path) -> None:
    files = {
        "hub/settings.yaml": f"{_SETTINGS}  DOMAIN: hub.example\n",
        "hub/prod.yaml": _spoke("prod", "app", "./app", _FROM).replace("name: settings", "name: spoke"),
        "hub/spoke.yaml": f"{_SETTINGS}  DOMAIN: spoke.example\n".replace("name: settings", "name: spoke"),
        "app/kustomization.yaml": kustomization("ks.yaml"),
        "app/ks.yaml": flux("inner", "./inner", _FROM),
        "inner/kustomization.yaml": kustomization("policy.yaml"),
        "inner/policy.yaml": policy("p"),
    }
    builds = {
        part.folder: part
        for environment in found(here, files)
        for part in environment.parts
        if isinstance(part, KustomizeBuild)
    }
    assert builds["app"].variables == {"DOMAIN": "spoke.example"}
    assert (builds["inner"].variables, builds["inner"].hidden) == ({}, None)


def test_a_folder_that_another_repository_may_have_is_named(here: Path) -> None:
    repository = "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n"
    repository += "metadata: {name: other, namespace: flux-system}\nspec: {url: 'https://git.example/policies'}\n"
    other = (
        flux("b", "./b")
        .replace("name: flux-system}\n", "name: other}\n")
        .replace("namespace: other", "namespace: flux-system")
    )
    files = {"k.yaml": f"{flux('a', './a')}---\n{other}{repository}", "a/p.yaml": policy("a"), "b/p.yaml": policy("b")}
    (environment,) = found(here, files)
    why = "it names the repository `policies`, which may be another one: `./b` of this one is read"
    assert _left_out(environment) == [("Kustomization flux-system/b", why)]


def test_files_that_flux_does_not_get_are_no_part_of_it(here: Path) -> None:
    files = {"k.yaml": flux("k", "./app"), ".sourceignore": "# no\ndrafts/\nx.yaml\n"}
    files |= {f"app/{name}.yaml": policy(name) for name in ("a", "x")} | {"app/drafts/d.yaml": policy("d")}
    (environment,) = found(here, files)
    assert environment.parts == (Files(("app/a.yaml",)),)
    assert environment.undeployed.files == ("app/x.yaml", "app/drafts/d.yaml")


def test_a_resource_set_is_named(here: Path) -> None:
    text = "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: r, namespace: shop}\n"
    expected = [("ResourceSet shop/r", "the objects that it makes are not followed")]
    for files in ({"k.yaml": flux("k", "./app"), "app/r.yaml": text}, {"k.yaml": "a: 1\n", "app/r.yaml": text}):
        (environment,) = found(here, {**files, "app/p.yaml": policy("p")})
        assert _left_out(environment) == expected
    (environment,) = found(here, {"app/kustomization.yaml": kustomization("r.yaml", "p.yaml")})
    assert _left_out(environment) == expected
