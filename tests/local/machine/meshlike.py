"""A process that behaves like a mesh: a folder, a reaper, two Envoys. It prints its processes to stdout.

`meshlike.py graceful PORT PORT` stops in order at SIGTERM, or when its stdin ends; `careless` handles no signals.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from eastgate.local.machine.envoy import EnvoyProcess
from eastgate.local.machine.rundir import Guard, RunDir
from tests.local.machine.envoys import bootstrap


async def main(manner: str, ports: list[int]) -> None:
    signal.signal(
        signal.SIGHUP, signal.SIG_DFL
    )  # a test run that outlives its terminal ignores it, and so its children
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    if manner == "graceful":
        loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(0, stop.set)
    with RunDir.acquire() as rundir, Guard(rundir) as guard:
        envoys = [
            await EnvoyProcess.start(
                bootstrap(port), f"shop/{port}", on_record=lambda _: None, on_log=lambda _: None, guard=guard
            )
            for port in ports
        ]
        started = {"reaper": guard.pid, "envoys": [envoy.pid for envoy in envoys], "folder": str(rundir.path)}
        print(json.dumps(started), flush=True)
        await stop.wait()
        await asyncio.gather(*(envoy.stop() for envoy in envoys))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], [int(port) for port in sys.argv[2:]]))
