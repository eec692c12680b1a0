"""A mesh as a process of its own, which prints its parts on stdout and then waits until it is killed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.meshes import running
from tests.faults.processes import descendants
from tests.faults.worlds import HTTP, allow, world


async def main() -> None:
    async with running(*world(HTTP, servers=3), allow("all", "alice")) as mesh:
        assert (await mesh.call("alice")).status == 200
        parts = {"processes": descendants(os.getpid()), "folder": str(mesh.mesh.rundir.path)}
        print(json.dumps(parts), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
