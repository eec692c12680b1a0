"""The sockets that an authorizer listens on."""

from __future__ import annotations

import asyncio
import socket

from eastgate.control.authorizer.locating import ListenAddress, listen


def test_answers_do_not_wait_for_one_another() -> None:
    async def run() -> None:
        delays: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        class Connection(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                accepted = transport.get_extra_info("socket")
                delays.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.close()

        listening = listen(ListenAddress.of("127.0.0.1:0"), shared=False)
        server = await asyncio.get_running_loop().create_server(Connection, sock=listening)
        _, writer = await asyncio.open_connection(*listening.getsockname())
        assert await delays
        writer.close()
        server.close()

    asyncio.run(run())
