"""The difference between the policies in force and the written ones."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from eastgate.authority.changes import ChangedNames, Changes, changes_between
from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.reading import Manifests, read_manifests
from eastgate.authority.sources.files import FileSource
from eastgate.control.events import MeshMetrics
from eastgate.local import reloading
from eastgate.local.reloading import Reloading
from eastgate.reading.manifests.watching.changes import watch_changes
from eastgate.settings import Settings
from tests.local.running import SHOP
from tests.patience import PATIENCE


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHOP, tmp_path / "shop"))


def after(manifests: Path, file: str, old: str, new: str) -> tuple[Manifests, Manifests]:
    before = read_manifests([manifests])
    path = manifests / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return before, read_manifests([manifests])


def put(changes: Changes) -> list[str]:
    return [*map(str, (policy.ref for policy in changes.put.policies)), *(each.name for each in changes.put.objects)]


def test_nothing_differs_where_nothing_was_changed(manifests: Path) -> None:
    found = changes_between(read_manifests([manifests]), read_manifests([manifests]))
    assert not found
    assert found.names == ChangedNames()


def test_only_the_policy_that_was_changed_is_put(manifests: Path) -> None:
    found = changes_between(*after(manifests, "policies.yaml", "ports: [8080]", "ports: [8081]"))
    assert put(found) == ["AuthorizationPolicy/shop/cart-from-web"]
    assert found.names.every == ("AuthorizationPolicy/shop/cart-from-web",)


def test_policies_on_other_lines_are_put_but_not_called_changed(manifests: Path) -> None:
    found = changes_between(*after(manifests, "policies.yaml", "      ports: [8080]\n", "      ports:\n      - 8080\n"))
    assert len(put(found)) == 4  # the whole file
    assert found.names.every == ("AuthorizationPolicy/shop/cart-from-web",)


def test_a_renamed_policy_is_one_removed_and_one_put(manifests: Path) -> None:
    found = changes_between(*after(manifests, "policies.yaml", "name: no-sandbox", "name: no-tests"))
    added, removed = "AuthorizationPolicy/shop/no-tests", "AuthorizationPolicy/shop/no-sandbox"
    assert [str(ref) for ref in found.removed] == [removed]
    assert found.names == ChangedNames(added=(added,), removed=(removed,))


def test_an_object_that_was_changed_is_put_alone(manifests: Path) -> None:
    found = changes_between(*after(manifests, "world.yaml", "tier: front", "tier: back"))
    assert put(found) == ["web"]
    assert found.names.every == ("Deployment/shop/web",)


def test_the_order_of_keys_in_an_object_is_nothing(manifests: Path) -> None:
    found = changes_between(
        *after(manifests, "world.yaml", "labels: {team: shop, env: test}", "labels: {env: test, team: shop}")
    )
    assert not found


def test_a_watch_that_fails_is_reported_and_what_was_saved_meanwhile_is_read(
    manifests: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    reloads: list[float] = []
    metrics = MeshMetrics(CollectorRegistry())
    mesh: Any = SimpleNamespace(emit=lambda event: notes.append(event.message), metrics=metrics, settings=Settings())
    watches = 0

    async def watch(*words: Any, **options: Any) -> AsyncGenerator[frozenset[str], None]:
        nonlocal watches
        watches += 1
        if watches == 1:
            raise TypeError("unhashable")
        async for changed in watch_changes(*words, **options):
            yield changed

    async def reload(_self: Reloading, began: float) -> None:
        reloads.append(began)

    monkeypatch.setattr(reloading, "watch_changes", watch)
    monkeypatch.setattr(Reloading, "reload", reload)

    async def run() -> None:
        following = asyncio.create_task(Reloading(mesh, FileSource([manifests])).run())
        async with asyncio.timeout(PATIENCE):
            while watches < 2 or len(reloads) < 2:
                await asyncio.sleep(0.01)
            before = len(reloads)
            while len(reloads) == before:
                (manifests / "late.yaml").write_text("kind: List\n" + "#" * len(reloads))
                await asyncio.sleep(0.05)
        following.cancel()

    asyncio.run(run())
    assert notes == ["watching the files failed, and begins again: unhashable"]
    assert b'eastgate_task_failures_total{task="watching the files"} 1.0' in metrics.text()


def test_check_is_about_the_files_as_they_are_now_with_the_settings_that_it_is_asked_for(manifests: Path) -> None:
    files = FileSource([manifests])
    settings, others = Settings(), Settings().enforced()
    files.read(others)
    before = files.checked(settings)
    assert files.checked(settings) is before
    assert files.checked(others).settings == others
    path = manifests / "policies.yaml"
    path.write_text(path.read_text().replace("ports: [8080]", "ports: [true]"))
    question = Question.of("sa:shop/web", "pod:shop/cart", port=8080, method="GET", path="/")
    with pytest.raises(QuestionError, match="cannot be read"):
        files.checked(settings).decide(question)


def test_a_policy_beside_a_secret_on_one_line_is_distinguished(tmp_path: Path) -> None:
    """Lines with secrets are shown with stars."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "c2VjcmV0"}}
    before, changed = (
        {
            "apiVersion": "security.istio.io/v1",
            "kind": "AuthorizationPolicy",
            "metadata": {"name": "one"},
            "spec": {"action": action},
        }
        for action in ("ALLOW", "DENY")
    )
    path = tmp_path / "all.json"
    read = []
    for policy in (before, changed):
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [secret, policy]}))
        read.append(read_manifests([path]))
    assert changes_between(*read).names.every == ("AuthorizationPolicy/default/one",)
