"""Every save takes effect, at any time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from eastgate.authority.reading import read_manifests
from eastgate.authority.sources import files as files_module
from eastgate.authority.sources.files import FileSource
from eastgate.control.authorizer.http_server import ServedRequest
from eastgate.control.authorizer.locating import ListenAddress
from eastgate.control.authorizer.log import DecisionLog
from eastgate.control.authorizer.reloading import PolicyFiles, Reload, follow_files
from eastgate.control.authorizer.service import AuthorizerService, ServiceOptions
from eastgate.settings import Settings
from tests.control.authorizer.worlds import MANIFESTS, Services
from tests.patience import PATIENCE


def test_a_save_between_reading_and_watching_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(MANIFESTS)
    files = PolicyFiles(FileSource([path]), Settings())
    policies = len(files.load().policies)
    path.write_text(MANIFESTS.replace("paths: [/reviews/*]", "paths: [/ratings]"))

    async def run() -> Reload:
        reloaded: asyncio.Future[Reload] = asyncio.get_running_loop().create_future()
        following = asyncio.create_task(follow_files(files, reloaded.set_result))
        try:
            return await asyncio.wait_for(reloaded, PATIENCE)
        finally:
            following.cancel()

    reload = asyncio.run(run())
    assert reload.authority is not None
    assert len(reload.authority.policies) == policies


def test_where_nothing_was_saved_nothing_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(MANIFESTS)
    files = PolicyFiles(FileSource([path]), Settings())
    files.load()
    reloads: list[Reload] = []

    async def run() -> None:
        following = asyncio.create_task(follow_files(files, reloads.append))
        await asyncio.sleep(0.6)
        following.cancel()

    asyncio.run(run())
    assert reloads == []


DENY = """
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: closed, namespace: shop}
spec:
  enforcementLevel: APPLICATION
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: reviews}}}]
  action: DENY
  rules: [{authorizationSource: {serviceAccounts: [web]}}]
"""


def test_an_unexpected_failure_is_reported_and_a_later_save_takes_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(MANIFESTS)
    files = PolicyFiles(FileSource([path]), Settings())
    authority = files.load()
    written = BytesIO()
    breaks = [True]

    def read(*paths: Any, **options: Any) -> Any:
        if breaks:
            raise TypeError("unhashable type: 'list'")
        return read_manifests(*paths, **options)

    monkeypatch.setattr(files_module, "read_manifests", read)

    async def run() -> None:
        service = AuthorizerService(
            ServiceOptions(admin=ListenAddress("127.0.0.1", 0)), authority, Services(), DecisionLog(written)
        )
        running = asyncio.create_task(service.run(files))
        async with asyncio.timeout(PATIENCE):
            await _until(lambda: _is_ready(service))
            path.write_text(MANIFESTS + DENY)
            await _until(lambda: not _is_ready(service))
            await _until(lambda: _failed(service) >= 2 or _is_ready(service))
            assert not _is_ready(service)  # the failure does not change it
            breaks.clear()
            await _until(lambda: _is_ready(service))
            names = {str(policy.ref) for policy in service.authorizer.authority.policies}
            assert "AuthorizationPolicy/shop/closed" in names
        service.stop()
        await running

    asyncio.run(run())
    events = [json.loads(line) for line in written.getvalue().splitlines()]
    assert {"following failed", "reloaded"} <= {event["event"] for event in events}
    assert all("TypeError" in event["error"] for event in events if event["event"] == "following failed")


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


def _is_ready(service: AuthorizerService) -> bool:
    status = service._answer_admin(ServedRequest("GET", "/readyz", "1.1", (), b"", None)).status
    assert service.is_ready is (status == 200)
    return status == 200


def _failed(service: AuthorizerService) -> float:
    lines = service.metrics.text().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("eastgate_task_failures_total{"))


def test_a_state_that_was_in_force_before_is_loaded_again_after_a_failure(tmp_path: Path) -> None:
    """The files are compared with the last read files, not with those of the start."""
    path = tmp_path / "policies.yaml"
    path.write_text(MANIFESTS)
    files = PolicyFiles(FileSource([path]), Settings())
    files.load()
    assert not files.has_changed()
    path.write_text(MANIFESTS + DENY)
    assert files.has_changed()
    assert files.reload().authority is not None
    assert not files.has_changed()
    path.write_text(MANIFESTS)
    assert files.has_changed()
