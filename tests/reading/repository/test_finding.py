"""Other deployments of a repository: kustomizations, charts, skaffold, folders; and files that must not be read."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from eastgate.basics.diagnostics import Reporter
from eastgate.reading.manifests import Bounds, Kustomized
from eastgate.reading.repository import ChartRender, EntryKind, Environment, Files, RepositoryOptions, find_environments
from tests.reading.repository.building import write
from tests.reading.repository.trees import KUSTOMIZATION, application, flux, found, kustomization, named, policy

_CHART = "apiVersion: v2\nname: {}\nversion: 1.0.0\n"


def _kinds(folder: Path, files: dict[str, str]) -> dict[str, EntryKind]:
    return {environment.name: environment.kind for environment in found(folder, files)}


def test_a_folder_of_manifests_is_one_environment(here: Path) -> None:
    files = {
        "policies/a.yaml": policy("a"),
        "workloads/deep/b.yml": policy("b"),
        "c.json": "{}",
        "readme.yaml": "a: 1\n",
    }
    (environment,) = found(here, files)
    assert environment.kind is EntryKind.FOLDER
    assert environment.parts == (Files(("policies/a.yaml", "workloads/deep/b.yml")),)


def test_an_empty_folder_has_none(here: Path) -> None:
    assert found(here, {"readme.yaml": "a: 1\n"}) == []


def test_files_and_kustomizations_that_are_named_are_no_environments(here: Path) -> None:
    write(here, {"a.yaml": policy("a"), "k/kustomization.yaml": kustomization()})
    paths: list[str | os.PathLike[str]] = ["a.yaml", "-", Kustomized("k"), "gone"]
    assert find_environments(paths, Bounds(None), Reporter(), RepositoryOptions()) == []


def test_bases_and_components_are_no_environments(here: Path) -> None:
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
    files = {
        "base/kustomization.yaml": kustomization("p.yaml"),
        "base/p.yaml": policy("p"),
        "more/kustomization.yml": component,
        "overlays/dev/Kustomization": kustomization("../../base", more="components: [../../more]\n"),
        "overlays/prod/kustomization.yaml": kustomization("../../base"),
        "other/kustomization.yaml": "apiVersion: example.org/v1\nkind: Kustomization\nmetadata: {name: x}\n",
    }
    assert _kinds(here, files) == {
        "dev": EntryKind.KUSTOMIZATION,
        "prod": EntryKind.KUSTOMIZATION,
        "other": EntryKind.FOLDER,
    }


def test_files_of_an_earlier_entry_are_not_entries(here: Path) -> None:
    files = {
        "clusters/x/k.yaml": flux("k", "./by-flux"),
        "by-flux/kustomization.yaml": kustomization("p.yaml"),
        "by-flux/p.yaml": policy("p"),
        "apps/a.yaml": application("a", "{path: by-argo}"),
        "by-argo/Chart.yaml": _CHART.format("by-argo"),
        "alone/Chart.yaml": _CHART.format("alone"),
        "inflating/kustomization.yaml": f"{KUSTOMIZATION}helmGlobals: {{chartHome: ../h}}\nhelmCharts: [{{name: c}}]\n",
        "h/c/Chart.yaml": _CHART.format("c"),
    }
    assert _kinds(here, files) == {
        "x": EntryKind.FLUX,
        "a": EntryKind.ARGO,
        "inflating": EntryKind.KUSTOMIZATION,
        "alone": EntryKind.CHART,
    }


def test_parts_of_charts_are_no_environments(here: Path) -> None:
    files = {
        "c/Chart.yaml": _CHART.format("c") + "dependencies: [{name: d, repository: 'file://../d'}]\n",
        "c/templates/p.yaml": policy("{{ x }}"),
        "c/charts/v/Chart.yaml": _CHART.format("v"),
        "c/crds/p.yaml": policy("p"),
        "d/Chart.yaml": _CHART.format("d"),
        "l/Chart.yaml": _CHART.format("l") + "type: library\n",
    }
    (environment,) = found(here, files)
    assert environment.parts == (ChartRender("c", "c"),)


def test_a_chart_at_the_root_leaves_the_folders_beside_its_templates(here: Path) -> None:
    files = {"Chart.yaml": _CHART.format("shop"), "templates/p.yaml": policy("p"), "k8s/p.yaml": policy("p")}
    environments = named(found(here, files))
    assert environments["shop"].parts == (ChartRender(".", "shop"),)
    assert environments["k8s"].parts == (Files(("k8s/p.yaml",)),)


def test_folders_that_define_the_same_differently_are_apart(here: Path) -> None:
    files = {
        "dev/p.yaml": policy("p"),
        "dev/q.yaml": policy("q"),
        "prod/p.yaml": policy("p", "other"),
        "shared/s.yaml": policy("s"),
        "same/q.yaml": policy("q"),
    }
    environments = named(found(here, files))
    assert {name: each.parts for name, each in environments.items()} == {
        "dev": (Files(("same/q.yaml", "shared/s.yaml", "dev/p.yaml", "dev/q.yaml")),),
        "prod": (Files(("same/q.yaml", "shared/s.yaml", "prod/p.yaml")),),
    }


def test_many_such_folders_have_nothing_in_common(here: Path) -> None:
    files = {f"example-{number:02}/p.yaml": policy("p", f"app-{number}") for number in range(20)}
    environments = named(found(here, files | {"other/q.yaml": policy("q")}))
    assert len(environments) == 21
    assert environments["example-07"].parts == (Files(("example-07/p.yaml",)),)
    assert environments["other"].parts == (Files(("other/q.yaml",)),)


def test_folders_beside_many_tests_are_tests_too(here: Path) -> None:
    files = {f"tests/t{number}/p.yaml": f"{policy('p')}  number: {number}\n" for number in range(13)}
    more = {"tests/other/q.yaml": policy("q"), "deploy/a.yaml": policy("a"), "policies/b.yaml": policy("b")}
    parts = {environment.name: environment.parts for environment in found(here, {**files, **more})}
    assert len(parts) == 15
    assert parts["other"] == (Files(("tests/other/q.yaml",)),)
    assert parts["manifests"] == (Files(("deploy/a.yaml", "policies/b.yaml")),)


def test_patterns_leave_out(here: Path) -> None:
    files = {
        "a/kustomization.yaml": kustomization(),
        "b/kustomization.yaml": kustomization(),
        "c/kustomization.yaml": kustomization(),
        "d/p.yaml": policy("p"),
        "d/drafts/q.yaml": policy("q"),
        ".eastgateignore": "b/\n",
        "d/.eastgateignore": "drafts\n",
        ".hidden/p.yaml": policy("p"),
    }
    environments = found(here, files, exclude=("c",))
    assert [environment.parts for environment in environments][1:] == [(Files(("d/p.yaml",)),)]
    assert [environment.name for environment in environments] == ["a", "d"]


def test_links_are_followed_inside_and_end(here: Path) -> None:
    outside = here.parent / "outside"
    write(outside, {"p.yaml": policy("outside")})
    write(here, {"a/p.yaml": policy("a"), "k/kustomization.yaml": kustomization()})
    os.symlink("..", here / "a" / "circle")
    os.symlink("../a", here / "k" / "a")
    os.symlink(outside, here / "out")
    os.symlink(outside / "p.yaml", here / "a" / "out.yaml")
    os.mkfifo(here / "a" / "pipe.yaml")
    reporter = Reporter()
    environments = find_environments(["."], Bounds.of(["."]), reporter, RepositoryOptions())
    assert named(environments)["a"].parts == (Files(("a/p.yaml",)),)
    assert sorted(finding.message for finding in reporter) == [
        "`a/out.yaml` leads out of the given folder, and is followed only with --follow",
        "`a/pipe.yaml` is a pipe, not a manifest",
        "`out` leads out of the given folder, and is followed only with --follow",
    ]


def test_a_link_of_the_repository_does_not_lead_flux_out(here: Path) -> None:
    outside = here.parent / "outside"
    write(outside, {"p.yaml": policy("outside"), "kustomization.yaml": kustomization("p.yaml")})
    os.symlink(outside, here / "app")
    write(here, {"k.yaml": flux("k", "./app"), "q.yaml": policy("q")})
    reporter = Reporter()
    environments = find_environments(["."], Bounds.of(["."]), reporter, RepositoryOptions())
    assert not any("outside" in str(each.parts) or "app" in str(each.parts) for each in environments)
    assert [gap.why for each in environments for gap in each.left_out] == [
        "the folder `./app` of the GitRepository `flux-system` is not in this repository"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: [\n",
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec:\n\tpath: x\n",
    ],
)
def test_a_declaration_that_cannot_be_read_is_not_passed_over(here: Path, text: str) -> None:
    (environment,) = found(here, {"k.yaml": text, "p.yaml": policy("p")})
    assert environment.parts == (Files(("k.yaml", "p.yaml")),)


def test_aliases_are_read(here: Path) -> None:
    text = flux("&name app", "./app").replace("flux-system}\nspec:", "flux-system}\nspec:\n  targetNamespace: *name")
    (environment,) = found(here, {"k.yaml": text, "app/p.yaml": policy("p")})
    assert [getattr(part, "namespace", None) for part in environment.parts] == ["app"]


def test_three_thousand_files_take_about_a_second(here: Path) -> None:
    files = {}
    for number in range(750):
        base = f"apps/team-{number % 20}/app-{number}"
        files[f"{base}/ks.yaml"] = flux(f"app-{number}", f"./{base}/app", "postBuild: {substitute: {A: b}}")
        files[f"{base}/app/kustomization.yaml"] = kustomization("a.yaml", "b.yaml")
        files[f"{base}/app/a.yaml"] = policy(f"a-{number}")
        files[f"{base}/app/b.yaml"] = policy(f"b-{number}") * 3
    write(here, files | {"clusters/x/apps.yaml": flux("apps", "./apps")})
    start = time.process_time()
    (environment,) = find_environments(["."], Bounds.of(["."]), Reporter(), RepositoryOptions())
    assert time.process_time() - start < 5
    assert len(environment.parts) == 750 * 2


def _files(environments: list[Environment]) -> set[str]:
    return {path for each in environments for part in each.parts if isinstance(part, Files) for path in part.paths}


@pytest.mark.parametrize(
    "text",
    [
        "{kind: NetworkPolicy, apiVersion: networking.k8s.io/v1, metadata: {name: x}}",
        '"\\x61piVersion": networking.k8s.io/v1\nkind: NetworkPolicy\n',
        "? apiVersion\n: networking.k8s.io/v1\n? kind\n: NetworkPolicy\n",
    ],
)
def test_a_document_that_is_written_unusually_is_found_behind_one_of_a_tool(here: Path, text: str) -> None:
    files = {"m/a.yaml": f"apiVersion: skaffold/v4beta1\nkind: Config\n---\n{text}\n", "m/web.yaml": policy("web")}
    assert _files(found(here, files)) == {"m/a.yaml", "m/web.yaml"}


def test_a_policy_of_our_own_group_is_found(here: Path) -> None:
    own = "apiVersion: eastgate.dev/v1alpha1\nkind: {}\nmetadata: {{name: x}}\n"
    files = {
        "a.yaml": own.format("ClusterAuthorizationPolicy"),
        "b.yaml": own.format("Invariant"),
        "w.yaml": policy("w"),
    }
    assert _files(found(here, files)) == {"a.yaml", "w.yaml"}


def test_a_file_in_utf_16_is_not_passed_over(here: Path) -> None:
    write(here, {"web.yaml": policy("web")})
    (here / "wide.yaml").write_bytes(policy("wide").encode("utf-16"))
    assert _files(found(here, {})) == {"web.yaml", "wide.yaml"}


@pytest.mark.parametrize("holder", ["Chart.yaml", "kustomization.yaml"])
def test_a_link_takes_no_folder_away_from_its_place(here: Path, holder: str) -> None:
    content = {"Chart.yaml": f"{_CHART.format('a')}type: library\n", "kustomization.yaml": kustomization("w.yaml")}
    write(here, {f"a/{holder}": content[holder], "a/w.yaml": policy("w"), "policies/p.yaml": policy("p")})
    (here / "a/templates").symlink_to("../policies")
    assert _files(found(here, {})) >= {"policies/p.yaml"}


def test_folders_that_are_too_deep_are_reported(here: Path) -> None:
    deep = "/".join(["d"] * 70)
    write(here, {"web.yaml": policy("web"), f"{deep}/p.yaml": policy("p")})
    reporter = Reporter()
    find_environments(["."], Bounds.of(["."]), reporter, RepositoryOptions())
    assert ["too many folders" in error.message for error in reporter.errors] == [True]


def test_of_charts_in_a_circle_one_is_deployed(here: Path) -> None:
    needs = "dependencies: [{{name: {0}, version: 1.0.0, repository: 'file://../{0}'}}]\n"
    files = {
        "a/Chart.yaml": _CHART.format("a") + needs.format("b"),
        "b/Chart.yaml": _CHART.format("b") + needs.format("a"),
    }
    assert _kinds(here, files) == {"a": EntryKind.CHART}


def test_a_chart_of_an_unused_component_is_deployed(here: Path) -> None:
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nhelmGlobals: {chartHome: ..}\n"
    files = {"a/Chart.yaml": _CHART.format("a"), "k/kustomization.yaml": f"{component}helmCharts: [{{name: a}}]\n"}
    assert _kinds(here, files) == {"a": EntryKind.CHART}


def test_the_file_of_a_tool_that_leads_out_is_not_read(here: Path) -> None:
    write(here.parent, {"outside.yaml": kustomization("../m")})
    write(here, {"m/kustomization.yaml": kustomization("p.yaml"), "m/p.yaml": policy("p"), "k/web.yaml": policy("web")})
    (here / "k/kustomization.yaml").symlink_to("../../outside.yaml")
    reporter = Reporter()
    environments = find_environments(["."], Bounds.of(["."]), reporter, RepositoryOptions())
    assert {each.name: each.kind for each in environments} == {"m": EntryKind.KUSTOMIZATION, "k": EntryKind.FOLDER}
    assert len(reporter.errors) == 1


def test_parts_that_skaffold_would_fetch_or_change_are_named(here: Path) -> None:
    text = "apiVersion: skaffold/v4beta6\nkind: Config\n"
    text += "requires: [{git: {repo: 'https://git.example/x'}}]\n"
    text += "manifests: {rawYaml: ['a.yaml', 'https://example.com/d.yaml'], kpt: [x], transform: [{name: y}]}\n"
    (environment,) = found(here, {"skaffold.yaml": text, "a.yaml": policy("a")})
    assert [(gap.what, gap.why) for gap in environment.left_out] == [
        ("`https://example.com/d.yaml`", "it would have to be fetched"),
        ("`https://git.example/x`", "it would have to be fetched"),
        ("`kpt` of skaffold", "it is not followed"),
        ("`transform` of skaffold", "it is not followed"),
    ]
