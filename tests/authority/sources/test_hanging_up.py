"""A cancelled request leaves no socket behind, whatever it was waiting for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import yaml

from eastgate.reading.kubernetes import connect
from tests.patience import PATIENCE


def test_a_request_that_is_cancelled_during_the_handshake_hangs_up(tmp_path: Path) -> None:
    """The server accepts the connection and never answers the client's hello."""

    async def run() -> None:
        greeted, hung_up = asyncio.Event(), asyncio.Event()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            greeted.set()
            await reader.read()
            hung_up.set()
            writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(PATIENCE), server, connect(_kubeconfig(tmp_path, port)) as connection:
            request = asyncio.create_task(connection.request("GET", "/api"))
            await greeted.wait()
            request.cancel()
            await asyncio.wait([request])
            assert request.cancelled()
            await hung_up.wait()

    asyncio.run(run())


def _kubeconfig(folder: Path, port: int) -> Path:
    path = folder / "kubeconfig"
    cluster = {"server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
    }
    path.write_text(yaml.safe_dump(config))
    return path
