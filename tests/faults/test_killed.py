"""A mesh that is killed leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from eastgate.local.machine import procfs
from tests.faults.meshes import until
from tests.patience import PATIENCE


async def test_a_mesh_that_is_killed_leaves_no_process_and_no_folder() -> None:
    program = str(Path(__file__).with_name("killable.py"))
    mesh = await asyncio.create_subprocess_exec(sys.executable, program, stdout=asyncio.subprocess.PIPE)
    try:
        assert mesh.stdout is not None
        parts = json.loads(await asyncio.wait_for(mesh.stdout.readline(), PATIENCE))
        folder, processes = Path(parts["folder"]), parts["processes"]

        def remains() -> list[str]:
            alive = [str(pid) for pid in processes if procfs.start_time(pid) is not None]
            return alive + [str(folder)] * folder.exists()

        assert len(remains()) == 5  # three Envoys, the reaper, the folder
        os.kill(mesh.pid, signal.SIGKILL)
        await until(lambda: not remains(), what="something remains")
    finally:
        if mesh.returncode is None:
            mesh.kill()
        await mesh.wait()
