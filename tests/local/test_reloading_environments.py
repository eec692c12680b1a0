"""The environments of a repository are found again after each save: new overlays, kustomizations, bases."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from eastgate.authority.authority import Authority
from eastgate.authority.changes import Changes
from eastgate.authority.questions import Question, ends
from eastgate.authority.sources.files import FileSource
from eastgate.cluster.unread import Handling
from eastgate.control.events import BrokenChange, MeshMetrics
from eastgate.local.reloading import Reloading
from eastgate.reading.manifests import Kustomized
from eastgate.settings import Settings
from tests.patience import PATIENCE
from tests.reading.repository.programs import stand_in

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: shop, labels: {app: NAME}}\n"
CLOSED = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: shop}
spec: {podSelector: {matchLabels: {app: api}}, policyTypes: [Ingress]}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one overlay and its base, beside a stand-in for kustomize."""
    stand_in(monkeypatch, tmp_path)
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    _write("base/kustomization.yaml", "resources: [pods.yaml]\n")
    _write("base/pods.yaml", "---\n".join(POD.replace("NAME", name) for name in ("api", "web")))
    _write("prod/kustomization.yaml", "resources: [../base]\n")
    return folder


def _write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class _Mesh:
    """The decisions of a mesh, without proxies."""

    def __init__(self, files: FileSource) -> None:
        self.settings = Settings()
        self.metrics = MeshMetrics(CollectorRegistry())
        self.authority: Authority = files.read(self.settings)
        self.is_behind = False
        self.texts: list[str] = []

    def emit(self, event: Any) -> None:
        errors = event.diagnostics if isinstance(event, BrokenChange) else ()
        self.texts += [error.message for error in errors] or [getattr(event, "message", "")]

    async def apply(self, changes: Changes, _began: float) -> None:
        self.authority.apply(changes)

    @property
    def verdict(self) -> str:
        question = Question(ends.Pod("shop", "web"), ends.Pod("shop", "api"), port=8080)
        return str(self.authority.decide(question).verdict)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def _following(files: FileSource) -> AsyncIterator[_Mesh]:
    mesh: Any = _Mesh(files)
    following = asyncio.create_task(Reloading(mesh, files).run())
    await asyncio.sleep(0.3)  # until it watches
    yield mesh
    following.cancel()


def _run(files: FileSource, story: Callable[[_Mesh], Awaitable[None]]) -> None:
    async def run() -> None:
        async with _following(files) as mesh:
            await story(mesh)

    asyncio.run(run())


@pytest.mark.parametrize("path", [".", "prod", Kustomized("prod")], ids=["repository", "overlay", "-k"])
def test_a_kustomization_that_takes_more_in_is_built_again(path: str | Kustomized, here: Path) -> None:
    async def story(mesh: _Mesh) -> None:
        assert mesh.verdict == "allow"
        _write("more/kustomization.yaml", "resources: [closed.yaml]\n")
        _write("more/closed.yaml", CLOSED)
        _write("prod/kustomization.yaml", "resources: [../base, ../more]\n")
        await mesh.until(lambda: mesh.verdict == "deny")
        _write("more/closed.yaml", CLOSED.replace("policyTypes", "ingress: [{}], policyTypes"))
        await mesh.until(lambda: mesh.verdict == "allow")  # its new files are followed, too
        _write("base/pods.yaml", Path("base/pods.yaml").read_text().replace("app: api", "app: other"))
        _write("more/closed.yaml", CLOSED)
        await mesh.until(lambda: not mesh.authority.world.workloads["shop/api"].labels.get("app", "").startswith("api"))
        assert mesh.verdict == "allow"

    _run(FileSource([path]), story)


def test_a_new_overlay_keeps_what_is_in_force_until_one_is_chosen(here: Path) -> None:
    async def story(mesh: _Mesh) -> None:
        _write("dev/kustomization.yaml", "resources: [../base]\n")
        await mesh.until(lambda: any("there are 2 environments: dev, prod" in text for text in mesh.texts))
        assert set(mesh.authority.world.workloads) == {"shop/api", "shop/web"}
        Path("dev/kustomization.yaml").unlink()
        _write("base/kustomization.yaml", "resources: [pods.yaml, closed.yaml]\n")
        _write("base/closed.yaml", CLOSED)
        await mesh.until(lambda: mesh.verdict == "deny")

    _run(FileSource(["."]), story)


def test_a_chosen_overlay_is_followed_beside_a_new_one(here: Path) -> None:
    async def story(mesh: _Mesh) -> None:
        _write("dev/kustomization.yaml", "resources: [../base]\n")
        _write("base/kustomization.yaml", "resources: [pods.yaml, closed.yaml]\n")
        _write("base/closed.yaml", CLOSED)
        await mesh.until(lambda: mesh.verdict == "deny")

    _run(FileSource(["."], environments=["prod"]), story)


@pytest.mark.parametrize("unread", [Handling.BY_KIND, Handling.WARN])
@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("resources: [../base\n", "there are 2 environments: base, prod"),  # its content is unknown
        ("resources: [../base, gone.yaml]\n", "left out: `gone.yaml` of resources"),
        ("kind: Kustomization\nnamePrefix: 1\nresources: [../base]\n", "left out: kustomization `prod`"),
    ],
)
def test_a_build_that_breaks_keeps_what_is_in_force(unread: Handling, broken: str, message: str, here: Path) -> None:
    _write("base/kustomization.yaml", "resources: [pods.yaml, closed.yaml]\n")
    _write("base/closed.yaml", CLOSED)

    async def story(mesh: _Mesh) -> None:
        assert mesh.verdict == "deny"
        _write("prod/kustomization.yaml", broken)
        await mesh.until(lambda: any(message in text for text in mesh.texts))
        assert mesh.verdict == "deny"
        assert set(mesh.authority.world.workloads) == {"shop/api", "shop/web"}
        _write("prod/kustomization.yaml", "resources: [../base]\n")
        _write("base/closed.yaml", CLOSED.replace("policyTypes", "ingress: [{}], policyTypes"))
        await mesh.until(lambda: mesh.verdict == "allow")

    _run(FileSource(["."], unread=unread), story)


def test_what_is_left_out_from_the_start_may_stay_so(here: Path) -> None:
    _write("prod/kustomization.yaml", "resources: [../base, https://example.com/more.yaml]\n")

    async def story(mesh: _Mesh) -> None:
        assert mesh.verdict == "allow"
        _write("base/kustomization.yaml", "resources: [pods.yaml, closed.yaml]\n")
        _write("base/closed.yaml", CLOSED)
        await mesh.until(lambda: mesh.verdict == "deny")

    _run(FileSource(["."], unread=Handling.WARN), story)
