"""Hostile repositories: they cannot make Eastgate read other files, or use too many resources."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from eastgate.reading.manifests import rendering
from eastgate.reading.repository import ChartRender, KustomizeBuild
from eastgate.reading.repository import closure as closures
from tests.reading.repository.building import POLICY, built, left_out, names, write

CHART = {"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n"}
CONTENT = "of-another-file"


def _template(text: str) -> str:
    return f"{POLICY}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: found}}\ndata: {{found: {text}}}\n"


def _everything(chart: ChartRender, helm: str) -> str:
    reading = built(chart, helm=helm)
    texts = {document.span.built.source.text for document in reading.documents if document.span.built}
    return "".join(texts) + str(reading.unbuilt)


@pytest.mark.parametrize("link", ["templates/link.yaml", "files/link.txt", "values.yaml", "charts/link"])
def test_a_link_out_of_the_repository_is_no_part_of_a_chart(link: str, helm: str, here: Path, tmp_path: Path) -> None:
    write(tmp_path, {"outside/secret": f"a: {CONTENT}\n", "outside/Chart.yaml": CONTENT})
    template = _template('{{ .Values.a | quote }}{{ .Files.Get "files/link.txt" | quote }}')
    write(
        here,
        {
            **CHART,
            "web/templates/x.yaml": template.replace("}}{{", "}}\n  more: {{")
            .replace("{found:", "\n  found:")
            .replace("}\n\n", ""),
        },
    )
    path = here / "web" / link
    path.parent.mkdir(exist_ok=True)
    os.symlink(tmp_path / "outside" if link == "charts/link" else tmp_path / "outside/secret", path)
    everything = _everything(ChartRender("web", "my"), helm)
    assert CONTENT not in everything
    assert f"`web/{link}`" in everything


def test_a_link_to_a_folder_above_ends(helm: str, here: Path) -> None:
    write(here, {**CHART, "web/templates/x.yaml": POLICY})
    os.symlink("..", here / "web/loop")
    reading = built(ChartRender("web", "my"), helm=helm)
    assert names(reading) == ["default/web"]


def test_charts_ask_no_cluster_and_no_name_server(helm: str, here: Path) -> None:
    looked = _template('"{{ len (lookup "v1" "Secret" "" "") }}{{ getHostByName "example.com" }}"')
    write(here, {**CHART, "web/templates/x.yaml": looked})
    assert 'found: "0"' in _everything(ChartRender("web", "my"), helm).replace("{", "").replace("}", "")


def test_charts_see_no_variables(helm: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", CONTENT)
    write(here, {**CHART, "web/templates/x.yaml": _template('"{{ env "SECRET" }}"')})
    everything = _everything(ChartRender("web", "my"), helm)
    assert CONTENT not in everything
    assert "fails: " in everything


@pytest.mark.parametrize(
    ("template", "why"),
    [
        (
            "{{ range until 100000 }}{{ range until 100000 }}{{ sha256sum `x` | trunc 0 }}{{ end }}{{ end }}",
            "takes longer than",
        ),
        ("{{ range until 2000 }}# {{ `x` | repeat 100 }}\n{{ end }}", "writes more than"),
        ("{{ define `a` }}{{ include `a` . }}{{ end }}{{ include `a` . }}", "fails: "),
    ],
    ids=["time", "size", "depth"],
)
def test_a_chart_takes_its_share(
    template: str, why: str, helm: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "_TIMEOUT_SECONDS", 3)
    monkeypatch.setattr(rendering, "_MAX_BYTES", 100_000)
    write(here, {**CHART, "web/templates/x.yaml": f"{POLICY}{template}"})
    ((what, _, said),) = left_out(built(ChartRender("web", "my"), helm=helm))
    assert (what, why in said) == ("chart `web`", True)


def test_memory_is_bounded(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"#!{sys.executable}\nx = bytearray(1 << 30)\nprint('# all of it')\n"
    write(tmp_path / "bin", {"kustomize": program})
    os.chmod(tmp_path / "bin/kustomize", 0o755)  # noqa: S103
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(rendering, "_MAX_MEMORY_BYTES", 1 << 29)
    write(here, {"kustomization.yaml": "resources: []\n"})
    ((_, _, why),) = left_out(built(KustomizeBuild(".")))
    assert "MemoryError" in why


def test_a_build_of_too_many_files_is_left_out(helm: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closures, "_MAX_FILES", 10)
    names_of = [f"f{number}.yaml" for number in range(20)]
    write(here, {**CHART, **{f"web/templates/{name}": POLICY for name in names_of}})
    write(here, {"kustomization.yaml": f"resources: [{', '.join(names_of)}]\n", **dict.fromkeys(names_of, POLICY)})
    reading = built(ChartRender("web", "my"), KustomizeBuild("."), helm=helm)
    assert [what for what, _, _ in left_out(reading)] == ["chart `web`", "kustomization `.`"]


def test_a_circle_of_kustomizations_ends(kustomize: Path) -> None:
    write(kustomize, {"a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"})
    ((what, _, why),) = left_out(built(KustomizeBuild("a")))
    assert (what, "cycle" in why) == ("kustomization `a`", True)


def test_a_kustomization_of_itself_ends(kustomize: Path) -> None:
    write(
        kustomize, {"a/kustomization.yaml": "resources: [../a]\n", "b/c/kustomization.yaml": "resources: [../../b/c]\n"}
    )
    for folder in ("a", "b/c"):
        ((what, _, why),) = left_out(built(KustomizeBuild(folder)))
        assert (what, "cycle" in why, "eastgate-" in why) == (f"kustomization `{folder}`", True, False)


def test_a_chart_that_depends_on_itself_ends(helm: str, here: Path) -> None:
    itself = "dependencies: [{name: web, version: 1.0.0, repository: 'file://.'}]\n"
    write(here, {"web/Chart.yaml": CHART["web/Chart.yaml"] + itself, "web/templates/x.yaml": POLICY})
    reading = built(ChartRender("web", "my"), helm=helm)
    assert len(reading.documents) + len(reading.unbuilt) >= 1


def test_names_of_releases_are_no_options(helm: str, here: Path) -> None:
    write(here, {**CHART, "web/templates/x.yaml": POLICY})
    reading = built(ChartRender("web", "--post-renderer=/bin/sh"), helm=helm)
    assert [what for what, _, _ in left_out(reading)] == ["chart `web`"]


def test_messages_have_no_control_characters(kustomize: Path) -> None:
    write(kustomize, {"a\x1b[31m/kustomization.yaml": "resources: [../base, 'https://x\x7f']\n"})
    reading = built(KustomizeBuild("a\x1b[31m"))
    assert all(text.isprintable() for left in left_out(reading) for text in (left[0], left[2]))
