"""A proxy that does not answer in time: the change is not reported as enforced, and is retried until it is."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from eastgate.authority.changes import Changes
from eastgate.authority.sources.files import FileSource
from eastgate.control.events import Enforced, MeshEvent, Noted, PartlyEnforced
from eastgate.local import mesh as meshes
from eastgate.local import reloading
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.local.reloading import Reloading
from eastgate.reading.manifests.watching.changes import watch_changes
from tests.faults.meshes import SERVER, Running, until
from tests.faults.worlds import HTTP, Manifest, allow, deny, world


def write(folder: Path, *policies: Manifest) -> None:
    """Replace the policies in the folder atomically, with a rename."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(policies)})
    (folder / "policies.new").write_text(text)
    (folder / "policies.new").rename(folder / "policies.json")


async def test_a_change_that_a_proxy_does_not_answer_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meshes, "_SETTLE_TIMEOUT_SECONDS", 0.3)
    (tmp_path / "world.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": world(HTTP)}))
    write(tmp_path, allow("all", "alice"))
    files = FileSource([tmp_path])
    events: list[MeshEvent] = []
    tries: list[Changes] = []

    async def apply(mesh: LocalMesh, changes: Changes, began: float | None = None) -> Enforced | PartlyEnforced:
        tries.append(changes)
        return await once(mesh, changes, began)

    once = LocalMesh.apply
    monkeypatch.setattr(LocalMesh, "apply", apply)
    async with LocalMesh(files.read, None, MeshOptions(name=f"stalled-{os.getpid()}"), events.append) as mesh:
        process = mesh.proxies.process(SERVER)
        assert process is not None
        following = asyncio.create_task(Reloading(mesh, files).run())
        try:
            os.kill(process.pid, signal.SIGSTOP)
            try:
                write(tmp_path, allow("all", "alice"), deny("none", "alice"))
                await until(lambda: any(isinstance(event, Noted) and event.trouble for event in events), 60)
                await until(lambda: len(tries) > 2, 60)
                assert not any(isinstance(event, Enforced) for event in events)
            finally:
                os.kill(process.pid, signal.SIGCONT)
            await until(lambda: any(isinstance(event, Enforced) for event in events), 60)
            assert (await Running(mesh).call("alice")).status == 0
        finally:
            following.cancel()
            await asyncio.wait([following])


async def test_a_watcher_that_fails_begins_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "world.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": world(HTTP)}))
    write(tmp_path, allow("all", "alice"))
    files = FileSource([tmp_path])
    events: list[MeshEvent] = []
    failures = iter([KeyError("no such folder")])

    def fail_once(*arguments: object, **options: object) -> object:
        for failure in failures:
            raise failure
        return watch_changes(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(reloading, "watch_changes", fail_once)
    async with LocalMesh(files.read, None, MeshOptions(name=f"watcher-{os.getpid()}"), events.append) as mesh:
        following = asyncio.create_task(Reloading(mesh, files).run())
        try:
            await until(lambda: any(isinstance(event, Noted) and event.trouble for event in events), 60)
            write(tmp_path, allow("all", "alice"), deny("none", "alice"))
            await until(lambda: any(isinstance(event, Enforced) for event in events), 60)
        finally:
            following.cancel()
            await asyncio.wait([following])
