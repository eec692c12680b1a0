"""HTTP requests to an MCP server and their messages, if they are unambiguous.

`requests.lua` does the same inside Envoy.
"""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.reading.mcp.messages import BadMessage, Message, MessageProblem, read_messages
from eastgate.reading.mcp.tool_lists import agrees, media_type

OVERRIDES = ("x-http-method", "x-http-method-override", "x-method-override")
"""Headers that override the method of a request on some servers."""


def read_request(method: str, headers: Iterable[tuple[str, str]], body: bytes) -> tuple[Message, ...]:
    """Return the messages of a request; none for GET and DELETE. Raises `BadMessage` in doubt."""
    fields = [(name.lower(), value) for name, value in headers]
    names = [name for name, _ in fields]
    if method not in ("POST", "GET", "DELETE") or not set(OVERRIDES).isdisjoint(names):
        raise BadMessage(MessageProblem.HTTP_METHOD)
    if "content-encoding" in names:
        raise BadMessage(MessageProblem.CONTENT_ENCODING)
    messages: tuple[Message, ...] = ()
    if method == "POST":
        types = [media_type(value) for name, value in fields if name == "content-type"]
        if types != ["application/json"]:
            raise BadMessage(MessageProblem.CONTENT_TYPE)
        messages = read_messages(body)
    elif body:
        raise BadMessage(MessageProblem.UNEXPECTED_BODY)
    if not agrees(messages, fields):
        raise BadMessage(MessageProblem.HEADERS)
    return messages
