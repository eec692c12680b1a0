"""Modules in Lua for Envoy. Each is a statement that defines a local variable, to be put in front of a script."""

from __future__ import annotations

from importlib.resources import files

from eastgate.mcp.messages import METHODS

__all__ = ["messages_lua", "sessions_lua"]


def messages_lua() -> str:
    """Return the module `messages`, which reads messages as `read_messages` does."""
    methods = ", ".join(f'"{method}"' for method in sorted(METHODS))
    return _source("messages.lua").replace("--[[METHODS]]", methods)


def sessions_lua() -> str:
    """Return the module `sessions`, which treats session ids as `wrap_session` and `unwrap_session` do."""
    return _source("sessions.lua")


def _source(name: str) -> str:
    return files("eastgate.mcp").joinpath(name).read_text("utf-8")
