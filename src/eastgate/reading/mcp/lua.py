"""Modules in Lua for Envoy. Each is a statement that defines a local variable, to be put in front of a script."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from eastgate.reading.mcp.messages import METHODS
from eastgate.reading.mcp.requests import OVERRIDES


def messages_lua() -> str:
    """Return the module `messages`, which reads messages as `read_messages` does."""
    return _source("messages.lua").replace("--[[METHODS]]", _listed(METHODS))


def requests_lua() -> str:
    """Return the modules `messages` and `requests`, which reads requests as `read_request` does."""
    return messages_lua() + _source("requests.lua").replace("--[[OVERRIDES]]", _listed(OVERRIDES))


def sessions_lua() -> str:
    """Return the module `sessions`: session ids that only the agent they were given to can use, for one server only.

    The gateway keeps no sessions. It hands `<id>.<tag>` to the client, and takes that back from the same peer for the
    same backend only: the tag is a truncated HMAC of all three.
    """
    return _source("sessions.lua")


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(f'"{text}"' for text in sorted(texts))


def _source(name: str) -> str:
    return files("eastgate.reading.mcp").joinpath(name).read_text("utf-8")
