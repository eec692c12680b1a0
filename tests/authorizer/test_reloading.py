"""What is saved is in force, whenever it is saved."""

from __future__ import annotations

import asyncio
from pathlib import Path

from eastgate.authorizer.reloading import PolicyFiles, Reload, follow_files
from eastgate.settings import Settings
from tests.authorizer.worlds import MANIFESTS
from tests.patience import PATIENCE


def test_a_save_between_reading_and_watching_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "policies.yaml"
    path.write_text(MANIFESTS)
    files = PolicyFiles([path], Settings())
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
    files = PolicyFiles([path], Settings())
    files.load()
    reloads: list[Reload] = []

    async def run() -> None:
        following = asyncio.create_task(follow_files(files, reloads.append))
        await asyncio.sleep(0.6)
        following.cancel()

    asyncio.run(run())
    assert reloads == []
