"""Kustomizations of environments are built, and parts that cannot be built are named."""

from __future__ import annotations

import copy
import json
import os
import pickle
import sys
from pathlib import Path

import pytest
import yaml

from eastgate.authority.reading import read_manifests
from eastgate.basics.diagnostics.spans import Span
from eastgate.reading.manifests import Bounds, Plain
from eastgate.reading.repository import Files, KustomizeBuild
from eastgate.reading.repository.origins import BuiltText
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

REMOTE = "https://example.com/x.yaml"
BASE = {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": POLICY}


def _deployment(name: str) -> str:
    return f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\n"


def test_a_kustomization_and_files_are_one_environment(kustomize: Path) -> None:
    write(kustomize, {**BASE, "prod/kustomization.yaml": "resources: [../base]\nnamespace: shop\n"})
    write(kustomize, {"plain/api.yaml": POLICY.replace("name: web", "name: api")})
    reading = built(KustomizeBuild("prod"), Files(("plain/api.yaml",)), namespace="own")
    assert (names(reading), left_out(reading)) == (["own/api", "shop/web"], [])
    assert reading.reporter.diagnostics == []


def test_objects_without_a_namespace_are_in_that_of_their_part(kustomize: Path) -> None:
    write(kustomize, {**BASE, "a.yaml": POLICY.replace("name: web", "name: a")})
    reading = built(KustomizeBuild("base", default_namespace="inner"), Files(("a.yaml",), "files"), namespace="outer")
    assert names(reading) == ["files/a", "inner/web"]


def test_flux_overlays_the_kustomization_of_the_folder(kustomize: Path) -> None:
    write(kustomize, {**BASE, "more/kustomization.yaml": "kind: Component\nresources: [more.yaml]\n"})
    write(kustomize, {"more/more.yaml": POLICY.replace("name: web", "name: more")})
    write(kustomize, {"base/kustomization.yaml": "resources: [web.yaml]\nnamePrefix: my-\nnamespace: own\n"})
    patch = '[{"op": "replace", "path": "/spec/ingress/0/ports/0/port", "value": 81}]'
    overlay: dict[str, Plain] = {
        "patches": [{"patch": patch, "target": {"kind": "NetworkPolicy", "name": "web"}}],
        "components": ["../more"],
    }
    reading = built(KustomizeBuild("base", namespace="flux", overlay=overlay))
    assert (names(reading), left_out(reading)) == (["flux/my-more", "flux/my-web"], [])
    (text,) = {document.span.built.source.text for document in reading.documents if document.span.built}
    assert "port: 81" in text


def test_images_of_flux_replace_images_of_the_kustomization(kustomize: Path) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: app}]}\n"
    images = "resources: [pod.yaml]\nimages: [{name: app, newName: other, digest: sha256:1}]\n"
    write(kustomize, {"kustomization.yaml": images, "pod.yaml": pod})
    reading = built(KustomizeBuild(".", overlay={"images": [{"name": "app", "newTag": "v2"}]}))
    assert "image: other:v2\n" in reading.documents[0].span.built.source.text  # type: ignore[union-attr]


def test_a_folder_without_a_kustomization_is_built_of_its_resources(kustomize: Path) -> None:
    write(kustomize, {"apps/a.yaml": POLICY, "apps/sub/kustomization.yaml": "resources: [b.yaml]\n"})
    write(kustomize, {"apps/sub/b.yaml": POLICY.replace("name: web", "name: b")})
    reading = built(KustomizeBuild("apps", namespace="shop", resources=("apps/a.yaml", "apps/sub")))
    assert (names(reading), left_out(reading)) == (["shop/b", "shop/web"], [])
    assert places(reading, "metadata", "name", of=0)[0] in ("apps/sub/b.yaml:4:9", "apps/a.yaml:4:9")


def test_variables_are_filled_in(kustomize: Path) -> None:
    text = POLICY.replace("name: web", "name: ${NAME}").replace("port: 80", "port: ${PORT:=8080}")
    off = text.replace("name: ${NAME}", "name: off\n  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}")
    write(kustomize, {"kustomization.yaml": "resources: [web.yaml, off.yaml]\n", "web.yaml": text, "off.yaml": off})
    reading = built(KustomizeBuild(".", variables={"NAME": "web"}, substitute=True))
    assert names(reading) == ["default/off", "default/web"]
    ports = [places(reading, "spec", "ingress", 0, "ports", 0, "port", of=of) for of in (0, 1)]
    assert sorted(ports) == [("off.yaml:11:13", "${PORT:=8080}"), ("web.yaml:10:13", "${PORT:=8080}")]
    assert names(built(KustomizeBuild("."))) == ["default/${NAME}", "default/off"]


def test_values_are_shown_where_they_are_written(kustomize: Path) -> None:
    patch = (
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web}\nspec:\n  policyTypes: [Egress]\n"
    )
    write(kustomize, {**BASE, "prod/patch.yaml": patch})
    more = "namePrefix: my-\npatches: [{path: patch.yaml}]\nnamespace: shop\n"
    write(kustomize, {"prod/kustomization.yaml": f"resources: [../base]\n{more}"})
    reading = built(KustomizeBuild("prod"))
    assert places(reading) == ("base/web.yaml:1:1", "apiVersion: networking.k8s.io/v1")
    assert places(reading, "spec", "ingress", 0, "ports", 0, "port") == ("base/web.yaml:10:13", "80")
    assert places(reading, "spec", "policyTypes", 0) == ("prod/patch.yaml:5:17", "Egress")
    where, text = places(reading, "metadata", "name")
    assert (where.rpartition(">")[0], text) == ("<kustomize build prod: base/web.yaml", "my-web")
    span = reading.documents[0].span
    assert span.built is not None
    assert "config.kubernetes.io" not in span.built.source.text
    assert reading.documents[0].span.holds(reading.documents[0].locate("metadata", "name"))


def test_own_annotations_stay(kustomize: Path) -> None:
    write(kustomize, {"kustomization.yaml": "resources: [a.yaml]\n"})
    write(kustomize, {"a.yaml": POLICY.replace("name: web", "name: web\n  annotations: {a: b}")})
    span = built(KustomizeBuild(".")).documents[0].span
    assert "  annotations:\n    a: b\n  name: web\n" in span.built.source.text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (REMOTE, "it would have to be fetched"),
        ("github.com/owner/repo/path?ref=v1", "it would have to be fetched"),
        ("nothing.yaml", "there is no such file or folder"),
        ("../plain", "it is a folder without a kustomization"),
        ("/etc", "it is an absolute path"),
    ],
)
def test_only_the_part_that_cannot_be_built_is_left_out(entry: str, why: str, kustomize: Path) -> None:
    write(kustomize, {**BASE, "plain/x.yaml": POLICY, "prod/patch.yaml": _deployment("gone")})
    resources = f"resources:\n- ../base\n- {entry}\n"
    write(kustomize, {"prod/kustomization.yaml": f"{resources}patches: [{{path: patch.yaml}}]\n"})
    write(kustomize, {"over/kustomization.yaml": "resources: [../prod]\npatchesStrategicMerge: [p.yaml]\n"})
    write(kustomize, {"over/p.yaml": _deployment("gone")})
    expected = [(f"`{entry}` of resources", "prod/kustomization.yaml:3", why)]
    for folder in ("prod", "over"):
        reading = built(KustomizeBuild(folder))
        assert (names(reading), left_out(reading)) == (["default/web"], expected)


def test_a_generator_is_built_without_the_sources_that_are_not_there(kustomize: Path) -> None:
    generators = (
        "configMapGenerator:\n- name: a\n  files: [key=https://example.com/x.json, here.txt]\n"
        "secretGenerator:\n- {name: b, envs: [.env]}\n- {name: c, env: other.env}\n"
    )
    write(
        kustomize, {"kustomization.yaml": f"resources: [web.yaml]\n{generators}", "web.yaml": POLICY, "here.txt": "x"}
    )
    reading = built(KustomizeBuild("."))
    assert "default/web" in names(reading)
    assert left_out(reading) == [
        (
            "`key=https://example.com/x.json` of configMapGenerator",
            "kustomization.yaml:4",
            "it would have to be fetched",
        ),
        ("`.env` of secretGenerator", "kustomization.yaml:6", "there is no such file"),
        ("`other.env` of secretGenerator", "kustomization.yaml:7", "there is no such file"),
    ]


def test_a_patch_of_a_present_object_applies_beside_omitted_parts(kustomize: Path) -> None:
    patch = POLICY.replace("port: 80", "port: 81")
    write(kustomize, {**BASE, "prod/patch.yaml": f"{patch}---\n{_deployment('gone')}"})
    write(
        kustomize, {"prod/kustomization.yaml": f"resources: [../base, '{REMOTE}']\npatches: [{{path: patch.yaml}}]\n"}
    )
    reading = built(KustomizeBuild("prod"))
    assert places(reading, "spec", "ingress", 0, "ports", 0, "port") == ("prod/patch.yaml:10:13", "81")


def test_a_file_that_would_be_fetched_is_left_out(kustomize: Path) -> None:
    write(kustomize, BASE)
    generator = f"configMapGenerator:\n- name: a\n  files:\n  - x={REMOTE}\n  - web.yaml\n"
    patches = f"patches:\n- path: {REMOTE}\n  target: {{kind: Pod}}\n"
    write(kustomize, {"base/kustomization.yaml": f"resources: [web.yaml]\n{generator}{patches}"})
    reading = built(KustomizeBuild("base"))
    assert [name.partition("-")[0] for name in names(reading)] == ["default/a", "default/web"]
    why = "it would have to be fetched"
    patch = (f"`{REMOTE}` of patches", "base/kustomization.yaml:8", why)
    assert left_out(reading) == [patch, (f"`x={REMOTE}` of configMapGenerator", "base/kustomization.yaml:5", why)]


def test_a_kustomization_without_deciding_objects_is_not_built(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unused = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"
    programs = {"kustomize": f"#!{sys.executable}\nraise AssertionError('it runs')\n"}
    write(here.parent / "bin", programs)
    os.chmod(here.parent / "bin/kustomize", 0o755)  # noqa: S103
    monkeypatch.setenv("PATH", str(here.parent / "bin"))
    write(here, {"kustomization.yaml": "resources: [a.yaml]\nnamespace: b\n", "a.yaml": f"{unused}---\n{unused}"})
    manifests = read_manifests([environment(KustomizeBuild("."))])
    assert (manifests.unused, manifests.reporter.diagnostics) == (2, [])
    assert read_environment(environment(KustomizeBuild(".")), skim=True).unbuilt == []
    template = (
        f"apiVersion: v1\nkind: Template\nmetadata: {{name: t}}\nobjects: [{json.dumps(yaml.safe_load(POLICY))}]\n"
    )
    write(here, {"kustomization.yaml": "resources: [a.yaml, t.yaml]\n", "t.yaml": template})
    assert len(read_environment(environment(KustomizeBuild(".")), skim=True).unbuilt) == 1
    patch = 'patches: [{target: {kind: Thing}, patch: \'[{"op": "replace", "path": "/kind", "value": "Pod"}]\'}]\n'
    for more in ("configMapGenerator: [{name: a}]\n", "transformers: [t.yaml]\n", patch):
        write(here, {"kustomization.yaml": f"resources: [a.yaml]\n{more}", "t.yaml": unused})
        assert len(read_environment(environment(KustomizeBuild(".")), skim=True).unbuilt) == 1
    write(here, {"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "b.yaml": POLICY})
    assert len(read_environment(environment(KustomizeBuild(".")), skim=True).unbuilt) == 1


def test_a_failed_build_is_left_out_with_the_error_of_the_program(kustomize: Path) -> None:
    write(kustomize, {**BASE, "bad/kustomization.yaml": "resources: [../base]\npatches: [{path: none.yaml}]\n"})
    reading = built(KustomizeBuild("base"), KustomizeBuild("bad"))
    assert names(reading) == ["default/web"]
    ((what, where, why),) = left_out(reading)
    assert (what, where) == ("kustomization `bad`", "bad/kustomization.yaml:1")
    assert "fails: " in why
    assert "none.yaml" in why
    assert "eastgate-" not in why
    assert str(kustomize) not in why


def test_a_kustomization_that_is_no_yaml_is_left_out(kustomize: Path) -> None:
    write(
        kustomize, {"bad/kustomization.yaml": "resources: [\n", "two/kustomization.yaml": "", "two/Kustomization": ""}
    )
    write(kustomize, {"none/x.yaml": POLICY})
    reading = built(KustomizeBuild("bad"), KustomizeBuild("two"), KustomizeBuild("none"))
    assert [what for what, _, _ in left_out(reading)] == [f"kustomization `{name}`" for name in ("bad", "two", "none")]


def test_without_a_program_all_kustomizations_are_left_out(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here, {**BASE, "a.yaml": POLICY.replace("name: web", "name: a")})
    monkeypatch.setenv("PATH", str(here))
    reading = built(KustomizeBuild("base"), Files(("a.yaml",)))
    assert names(reading) == ["default/a"]
    assert left_out(reading) == [("kustomization `base`", "base", "neither kustomize nor kubectl is on the PATH")]


def test_links_inside_of_the_repository_are_followed(kustomize: Path) -> None:
    write(kustomize, {**BASE, "prod/kustomization.yaml": "resources: [link, other.yaml]\n"})
    os.symlink("../base", kustomize / "prod/link")
    write(kustomize, {"other/o.yaml": POLICY.replace("name: web", "name: o")})
    os.symlink("../other/o.yaml", kustomize / "prod/other.yaml")
    reading = built(KustomizeBuild("prod"))
    assert (names(reading), left_out(reading)) == (["default/o", "default/web"], [])


def test_files_beside_the_folder_may_be_named_as_flux_allows(kustomize: Path) -> None:
    write(kustomize, {**BASE, "prod/kustomization.yaml": "resources: [../base/web.yaml]\n"})
    reading = built(KustomizeBuild("prod"))
    assert (names(reading), left_out(reading)) == (["default/web"], [])


def test_nothing_outside_of_the_repository_is_read(kustomize: Path, tmp_path: Path) -> None:
    write(tmp_path, {"outside/kustomization.yaml": "resources: [x.yaml]\n", "outside/x.yaml": POLICY})
    write(tmp_path, {"outside/secret.txt": "secret"})
    os.symlink(tmp_path / "outside", kustomize / "link")
    write(kustomize, {"prod/kustomization.yaml": "resources: [../../outside, ../../outside/y.yaml, ../link]\n"})
    write(tmp_path, {"outside/y.yaml": POLICY.replace("name: web", "name: y")})
    reading = built(KustomizeBuild("prod"))
    assert names(reading) == []
    assert {why for _, _, why in left_out(reading)} == {"it leads out of the given folder; to read it, use --follow"}
    for name in (str(tmp_path / "outside/secret.txt"), "../../outside/secret.txt"):
        write(kustomize, {"gen/kustomization.yaml": f"configMapGenerator: [{{name: a, files: ['{name}']}}]\n"})
        ((what, _, why),) = left_out(built(KustomizeBuild("gen")))
        assert (what, "secret" in why.replace("secret.txt", "")) == ("kustomization `gen`", False)
    os.unlink(kustomize / "link")
    write(kustomize, {"prod/kustomization.yaml": "resources: [../../outside, ../../outside/y.yaml]\n"})
    followed = built(KustomizeBuild("prod"), bounds=Bounds.of(["."], follow=True))
    assert (names(followed), left_out(followed)) == (["default/web", "default/y"], [])


def test_plugins_are_not_run(kustomize: Path) -> None:
    function = "{config.kubernetes.io/function: 'exec: {path: ./run}'}"
    plugin = f"apiVersion: x/v1\nkind: Exec\nmetadata: {{name: x, annotations: {function}}}\n"
    write(
        kustomize, {"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": plugin, "run": "#!/bin/sh\ntouch ran\n"}
    )
    os.chmod(kustomize / "run", 0o755)  # noqa: S103
    ((what, _, _),) = left_out(built(KustomizeBuild(".")))
    assert (what, (kustomize / "ran").exists()) == ("kustomization `.`", False)


DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.com
  labels:
    a: b
# what follows is large
spec:
  group: example.com
  versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]
"""


def _built_text(here: Path, files: dict[str, str], *, skim: bool = True) -> tuple[str, list[tuple[str, str, str]]]:
    """Return the output for a kustomization with a policy and a CRD."""
    write(here, {"web.yaml": POLICY, "crd.yaml": f"{DEFINITION}---\n{_deployment('a')}", **files})
    reading = read_environment(environment(KustomizeBuild(".")), skim=skim)
    (text,) = {document.span.built.source.text for document in reading.documents if document.span.built} or {""}
    return text, left_out(reading)


def test_definitions_of_kinds_are_built_without_their_bodies(kustomize: Path) -> None:
    kustomization = "resources: [web.yaml, crd.yaml]\ncommonLabels: {c: d}\n"
    text, lost = _built_text(kustomize, {"kustomization.yaml": kustomization})
    assert "kind: CustomResourceDefinition\nmetadata:\n  labels:\n    a: b\n    c: d\n" in text
    assert "  name: a\n" in text
    assert ("schema" in text, lost) == (False, [])
    whole, _ = _built_text(kustomize, {}, skim=False)
    assert "schema" in whole  # a reader of everything gets the schema


@pytest.mark.parametrize(
    ("patch", "is_whole"),
    [
        ("target: {kind: CustomResourceDefinition, name: things.example.com}", True),
        ("target: {kind: CustomResourceDefinition, name: other.example.com}", False),
        ("target: {kind: Custom.*}", True),  # it fails without a schema
    ],
    ids=["named", "another", "any"],
)
def test_a_patch_of_a_definition_finds_its_body(patch: str, is_whole: bool, kustomize: Path) -> None:
    operation = '[{"op": "add", "path": "/spec/versions/0/served", "value": true}]'
    patches = f"patches:\n- {patch}\n  patch: '{operation}'\n"
    text, lost = _built_text(kustomize, {"kustomization.yaml": f"resources: [web.yaml, crd.yaml]\n{patches}"})
    assert ("served: true" in text, "schema" in text, lost) == (is_whole, is_whole, [])


@pytest.mark.parametrize("field", ["transformers", "crds"])
def test_fields_that_may_read_schemas_get_whole_crds(field: str, kustomize: Path) -> None:
    more = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: l}\nlabels: {x: y}\n"
    files = {"more.yaml": more if field == "transformers" else "{}"}
    kustomization = f"resources: [web.yaml, crd.yaml]\n{field}: [more.yaml]\n"
    text, _ = _built_text(kustomize, {**files, "kustomization.yaml": kustomization})
    assert "schema" in text


def test_a_mistake_beside_a_definition_is_named(kustomize: Path) -> None:
    kustomization = "resources: [web.yaml, crd.yaml]\npatches: [{path: none.yaml}]\n"
    text, ((what, _, why),) = _built_text(kustomize, {"kustomization.yaml": kustomization})
    assert (text, what) == ("", "kustomization `.`")
    assert "none.yaml" in why


def test_positions_are_computed_on_demand(kustomize: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Span] = []
    look_up = BuiltText.origin_of

    def noted(self: BuiltText, built: Span) -> Span:
        asked.append(built)
        return look_up(self, built)

    monkeypatch.setattr(BuiltText, "origin_of", noted)
    write(kustomize, {**BASE, "base/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {}\n"})
    write(kustomize, {"base/kustomization.yaml": "resources: [web.yaml, pod.yaml]\n"})
    manifests = read_manifests([environment(KustomizeBuild("base"))])
    assert asked == []
    (span,) = (policy.span for policy in manifests.policies)
    copies = [copy.copy(span), pickle.loads(pickle.dumps(span))]  # noqa: S301 - our own
    assert [str(each) for each in (span, span, *copies)] == ["base/web.yaml:1:1"] * 4
    assert len(asked) == 3  # the first one caches it
