"""Reading of environments, with stand-ins for the programs that build them: files, spans, omitted parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.authority.reading import read_manifests
from eastgate.authority.sources.files import FileSource
from eastgate.basics.diagnostics import Diagnostic
from eastgate.reading.manifests import Plain
from eastgate.reading.manifests.codes import DUPLICATE_KEY
from eastgate.reading.repository import ChartRender, Environment, Files, KustomizeBuild
from eastgate.reading.repository.closure import BuildFiles
from eastgate.reading.repository.helm import last_key_wins
from eastgate.reading.repository.rewriting import allow_missing_targets, merged, remote_files
from eastgate.settings import Settings
from tests.reading.repository.building import POLICY, built, environment, left_out, names, places, write
from tests.reading.repository.programs import stand_in

REMOTE = "https://example.com/x.yaml"
CHART = "apiVersion: v2\nname: web\nversion: 1.0.0\n"


@pytest.fixture
def ran(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the stand-ins that ran, in a checkout that is the working directory."""
    assert here.exists()
    (tmp_path / "bin").mkdir()
    return stand_in(monkeypatch, tmp_path / "bin")


def test_an_overlay_and_a_base(ran: list[str], here: Path) -> None:
    write(here, {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": f"# first\n{POLICY}"})
    write(here, {"prod/kustomization.yaml": f"resources: [../base, {REMOTE}]\npatches: [{{path: patch.yaml}}]\n"})
    write(here, {"prod/patch.yaml": POLICY.replace("port: 80", "port: 81")})
    reading = built(KustomizeBuild("prod", "shop", overlay={"namePrefix": "my-"}))
    assert (names(reading), ran) == (["shop/my-web"], ["kustomize"])
    why = "it would have to be fetched"
    assert left_out(reading) == [(f"`{REMOTE}` of resources", "prod/kustomization.yaml:1", why)]
    assert places(reading) == ("base/web.yaml:2:1", "apiVersion: networking.k8s.io/v1")
    assert places(reading, "spec", "ingress", 0, "ports", 0, "port") == ("base/web.yaml:11:13", "80")
    where, text = places(reading, "metadata", "namespace")
    assert (where.startswith("<kustomize build prod: base/web.yaml>:"), text) == (True, "shop")
    (document,) = reading.documents
    assert document.span.holds(document.locate("metadata", "namespace"))
    assert document.locate("metadata", "namespace").source is document.locate("metadata", "name").source


def test_a_chart_and_its_parts(ran: list[str], here: Path) -> None:
    text = POLICY.replace("port: 80", "port: {{ x }}")
    write(
        here,
        {"web/Chart.yaml": f"{CHART}dependencies: [{{name: far, version: 1.0.0}}]\n", "web/templates/a.yaml": text},
    )
    write(here, {"web/values.yaml": "a: 1\n", "web/charts/near/Chart.yaml": CHART, "v.yaml": "b: 1\n"})
    part = ChartRender("web", "my", "shop", ("v.yaml", "none.yaml"), ({"c": 1},))
    reading = built(part, helm="helm")
    assert (names(reading), ran) == (["shop/web"], ["helm"])
    assert [what for what, _, _ in left_out(reading)] == ["values `none.yaml` of chart `web`", "chart `far`"]
    assert places(reading, "metadata", "name") == ("web/templates/a.yaml:4:9", "web")
    assert places(reading, "spec", "ingress", 0, "ports", 0, "port") == ("web/templates/a.yaml:10:13", "{{ x }}")


def test_a_chart_in_a_kustomization(ran: list[str], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here, {"prod/charts/web/Chart.yaml": CHART, "prod/charts/web/templates/a.yaml": POLICY, "prod/v.yaml": ""})
    entries = "[{name: web, valuesFile: v.yaml, valuesInline: {a: 1}, valuesMerge: replace}, {name: far}, {}]"
    write(here, {"prod/kustomization.yaml": f"helmCharts: {entries}\nhelmChartInflationGenerator: []\n"})
    reading = built(KustomizeBuild("prod"), helm="helm")
    assert (names(reading), ran) == (["default/web"], ["helm", "kustomize"])
    assert places(reading) == ("prod/charts/web/templates/a.yaml:1:1", "apiVersion: networking.k8s.io/v1")
    said = ["helmChartInflationGenerator", "chart `far`", "an entry of helmCharts"]
    assert [what for what, _, _ in left_out(reading)] == said
    monkeypatch.setenv("PATH", str(here))
    assert [why for _, _, why in left_out(built(KustomizeBuild("prod")))] == [
        "neither kustomize nor kubectl is on the PATH"
    ]


def test_a_folder_without_a_kustomization(ran: list[str], here: Path) -> None:
    write(
        here,
        {
            "apps/a.yaml": POLICY.replace("name: web", "name: ${A}"),
            "apps/b/kustomization.yaml": "resources: [b.yaml]\n",
        },
    )
    write(
        here, {"apps/b/b.yaml": POLICY, "apps/c/kustomization.yaml": "resources: [c.yaml]\n", "apps/c/c.yaml": POLICY}
    )
    resources = ("apps/a.yaml", "apps/b", "apps/none.yaml")
    overlay: dict[str, Plain] = {"components": ["c", "none"]}
    reading = built(KustomizeBuild("apps", None, {"A": "a"}, True, overlay, resources=resources))
    assert names(reading) == ["default/a", "default/web"]
    assert [what for what, _, _ in left_out(reading)] == ["`apps/none.yaml`", "`none` of components"]
    assert ran == ["kustomize"]


def test_invalid_kustomizations(ran: list[str], here: Path) -> None:
    write(
        here, {"list/kustomization.yaml": "- a\n", "empty/kustomization.yaml": "resources: [x]\n", "no/x.yaml": POLICY}
    )
    reading = built(*(KustomizeBuild(name) for name in ("no", "list", "empty")))
    said = ["kustomization `no`", "kustomization `list`", "`x` of resources"]
    assert [what for what, _, _ in left_out(reading)] == said
    assert ran == ["kustomize"] * 2


def test_paths_out_of_bounds(ran: list[str], here: Path, tmp_path: Path) -> None:
    write(tmp_path, {"out/kustomization.yaml": "resources: []\n", "out/Chart.yaml": CHART, "out/a.yaml": POLICY})
    reading = built(
        KustomizeBuild("../out"), ChartRender("../out", "x"), ChartRender("none", "x"), Files(("../out/a.yaml",))
    )
    assert [what for what, _, _ in left_out(reading)] == ["kustomization `../out`", "chart `../out`", "chart `none`"]
    assert [finding.code.id for finding in reading.reporter] == ["EG1023"]
    assert ran == []


def test_files_of_an_environment(here: Path) -> None:
    write(here, {"a.yaml": POLICY, "b.yaml": POLICY.replace("name: web", "name: b")})
    reading = built(Files(("a.yaml", "none.yaml")), Files(("b.yaml", "a.yaml"), "inner"), namespace="outer")
    assert names(reading) == ["inner/b", "outer/web"]
    assert [finding.code.id for finding in reading.reporter] == ["EG1001"]


def test_manifests_of_several_environments(ran: list[str], here: Path) -> None:
    write(here, {"a/kustomization.yaml": "resources: [a.yaml]\n", "a/a.yaml": POLICY})
    prod = environment(KustomizeBuild("a", "a"))
    dev = environment(KustomizeBuild("a", "b"))
    assert [policy.ref.namespace for policy in read_manifests([prod, dev]).policies] == ["a", "b"]
    assert ran == ["kustomize"] * 2


def test_an_error_in_a_built_policy_closes_its_targets(ran: list[str], here: Path) -> None:
    write(here, {"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": POLICY.replace("port: 80", "port: 80000000")})
    manifests = read_manifests([environment(KustomizeBuild("."))])
    (error,) = manifests.reporter.errors
    assert (str(error.span), error.span.underlined) == ("a.yaml:10:13", "80000000")  # type: ignore[union-attr]
    assert (len(manifests.closing), manifests.unattributed_errors, ran) == (1, [], ["kustomize"])


def test_the_input_of_a_build_is_watched(ran: list[str], here: Path) -> None:
    write(here, {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": POLICY, "plain.yaml": POLICY})
    write(here, {"prod/kustomization.yaml": "resources: [../base]\nhelmCharts: [{name: web}]\n"})
    write(here, {"web/Chart.yaml": CHART, "web/templates/_x.tpl": "", "v.yaml": "", "top/x.yaml": POLICY})
    parts = (KustomizeBuild("prod"), ChartRender("web", "x", None, ("v.yaml",)), Files(("plain.yaml",)))
    source = FileSource([environment(*parts, root="top"), "top"])
    source.read_now(Settings())
    assert {*map(str, source.watched)} >= {
        *("base", "base/web.yaml", "base/kustomization.yaml", "prod", "prod/charts", "web/templates/_x.tpl"),
        *("v.yaml", "plain.yaml", "top"),
    } - {"base"}


def test_a_half_written_file_makes_all_of_a_build_unreliable(ran: list[str], here: Path) -> None:
    write(here, {"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": POLICY})
    source = FileSource([environment(KustomizeBuild("."))])
    source.read(Settings())
    with (here / "kustomization.yaml").open("a") as file:
        file.write("# half")
        file.flush()
        reading = source.read_at_rest(Settings())
    assert (reading.rendered, ran) == (True, ["kustomize"] * 2)


def test_the_last_of_two_keys_wins_and_lines_stay() -> None:
    text = "a: 1\nb:\n- x: 1\n  y: |\n    z\n  x: 2\na:\n  c: 1\n  c: 2\n"
    assert last_key_wins(text) == "# a: 1\nb:\n- # x: 1\n  y: |\n    z\n  x: 2\na:\n  # c: 1\n  c: 2\n"
    for same in ("a: 1\n", "a: &a {b: 1, b: 2}\nc: *a\n", "a: [\n", "a: !x 1\n"):
        assert last_key_wins(same) == same


def test_a_template_may_write_a_key_twice(ran: list[str], here: Path) -> None:
    text = POLICY.replace("  name: web", "  name: first\n  name: web")
    write(here, {"web/Chart.yaml": CHART, "web/templates/a.yaml": text, "plain.yaml": text})
    reading = built(ChartRender("web", "x"), helm="helm")
    assert (names(reading), reading.reporter.diagnostics, ran) == (["default/web"], [], ["helm"])
    findings: list[Diagnostic] = built(Files(("plain.yaml",))).reporter.diagnostics
    assert [finding.code for finding in findings] == [DUPLICATE_KEY]


def test_images_and_lists_of_an_overlay_are_merged() -> None:
    images: list[Plain] = [{"name": "a", "newTag": "1", "newName": "b"}, {"name": "c", "digest": "d"}]
    value: dict[str, Plain] = {"images": images, "patches": [1], "labels": {"a": "b"}, "namespace": "x"}
    more: list[Plain] = [{"name": "a", "digest": "e", "newName": ""}, {"name": "f", "newTag": "2"}]
    assert merged(value, {"images": more, "patches": [2], "labels": {"c": "d"}, "namespace": "y"}) == {
        "images": [
            {"name": "a", "newName": "b", "digest": "e"},
            {"name": "c", "digest": "d"},
            {"name": "f", "newTag": "2"},
        ],
        "patches": [1, 2],
        "labels": {"a": "b", "c": "d"},
        "namespace": "y",
    }


def test_patches_without_a_target_get_one() -> None:
    patch = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a.b, namespace: c}\n"
    value: dict[str, Plain] = {
        "patches": [{"patch": patch, "options": {"allowNameChange": True}}, {"path": "p", "target": {"kind": "Pod"}}],
        "patchesStrategicMerge": [patch, "gone.yaml"],
        "patchesJson6902": [{"path": "j", "target": {"kind": "Pod"}}],
    }
    result = allow_missing_targets(value, lambda _: None)
    patches = result["patches"]
    assert isinstance(patches, list)
    assert result.keys() == {"patches"}
    target: Plain = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "a\\.b", "namespace": "c"}
    assert [entry.get("target") for entry in patches if isinstance(entry, dict)] == [
        target, {"kind": "Pod"}, target, None, {"kind": "Pod"},
    ]  # fmt: skip


def test_addresses_are_taken_out() -> None:
    value: dict[str, Plain] = {
        "patches": [{"path": REMOTE}, {"path": "a"}],
        "secretGenerator": [{"files": ["x", f"y={REMOTE}"], "literals": ["url=https://example.com/a b"]}],
    }
    assert [name for _, name in remote_files(value)] == [REMOTE, f"y={REMOTE}"]
    assert value["patches"] == [{"path": "a"}]


def test_environments_are_paths(here: Path) -> None:
    prod: Environment = environment(Files(()))
    assert (prod.__fspath__(), prod.arguments) == (".", ("-f", ".", "--environment", "prod"))
    assert BuildFiles.__slots__
    assert here.exists()
