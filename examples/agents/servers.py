"""Two MCP servers with the official SDK, and the limits service: `python servers.py LIMIT PORT...`.

The ports are those of tickets, ledger and limits. LIMIT is the largest amount of a refund.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

tickets, ledger = MCPServer("tickets"), MCPServer("ledger")


@tickets.tool(name="list")
def list_tickets() -> str:
    """List the open tickets."""
    return "#17 where is my parcel?"


@tickets.tool()
def answer(ticket: int, text: str) -> str:
    """Answer a ticket."""
    return f"#{ticket} answered: {text}"


@tickets.tool()
def close(ticket: int) -> str:
    """Close a ticket for good."""
    return f"#{ticket} closed"


@ledger.tool(name="list")
def list_entries() -> str:
    """List the entries of today."""
    return "42.00 parcel"


@ledger.tool()
def refund(amount: int) -> str:
    """Pay money back."""
    return f"{amount} refunded"


@ledger.tool()
def export() -> str:
    """Export everything."""
    return "all of it"


def limits(limit: int) -> Any:
    """Return the limits service. It gets each request unchanged, and answers 200 if the amount is within the limit."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        arguments = (json.loads(body or b"{}").get("params") or {}).get("arguments") or {}
        status = 200 if arguments.get("amount", 0) <= limit else 403
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    return application


async def serve(limit: int, ports: list[int]) -> None:
    """Serve until the process is stopped."""
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the gateway chooses the host
    servers = [server.streamable_http_app(transport_security=security) for server in (tickets, ledger)]
    configs = [
        uvicorn.Config(
            application, host="127.0.0.1", port=port, log_level="error", lifespan="off" if index == 2 else "on"
        )
        for index, (application, port) in enumerate(zip([*servers, limits(limit)], ports, strict=True))
    ]
    await asyncio.gather(*(uvicorn.Server(config).serve() for config in configs))


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    asyncio.run(serve(int(sys.argv[1]), [int(port) for port in sys.argv[2:]]))
