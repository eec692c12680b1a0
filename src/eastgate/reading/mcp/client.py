"""A client of MCP servers, independent of the HTTP client.

A conversation is a generator: it yields requests, receives their answers, and returns an outcome. `converse` runs it
with a function that sends one request:

    outcome = await converse(make_request("ping", {}), send)

Without a version, the newest is tried first, in which a call is one request. A server that does not know it is asked
again in the protocol of older versions, with a handshake and, if it wants, a session.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TypeGuard

from eastgate.basics.records import dataclass
from eastgate.reading.mcp import tool_lists
from eastgate.reading.mcp.messages import NAMED, BadMessage, MessageProblem, decode_text, read_json
from eastgate.reading.mcp.sse import read_events
from eastgate.reading.mcp.tool_lists import LEGACY_VERSIONS, MODERN_VERSIONS
from eastgate.reading.strict_json import Json

MAX_PAGES = 100
"""The most pages of a list that are requested."""

_MAX_BYTES = 16 * 1024 * 1024
_META = "io.modelcontextprotocol/"
_CLIENT = {"name": "eastgate", "version": "1"}
_ACCEPT = "application/json, text/event-stream"
_MODERN_ERRORS = frozenset((-32020, -32021, -32022))
_UNSUPPORTED = -32022
_NOT_FOUND = -32601


@dataclass(frozen=True, slots=True)
class Post:
    """A request to the server's endpoint. `method` is POST, or DELETE for the end of a session."""

    headers: tuple[tuple[str, str], ...]
    body: bytes
    method: str = "POST"


@dataclass(frozen=True, slots=True)
class PostAnswer:
    """The answer to a request, with its whole body."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the first value of a header."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class RpcError:
    """The error in a JSON-RPC response."""

    code: int
    message: str
    data: Json = None


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of a conversation: the last answer, and the method that it answers.

    Without a result and an error, the answer is not an MCP response, for example a plain 403.
    """

    method: str
    version: str
    answer: PostAnswer
    result: Mapping[str, Json] | None = None
    error: RpcError | None = None


Conversation = Generator[Post, PostAnswer, CallOutcome]


async def converse(conversation: Conversation, send: Callable[[Post], Awaitable[PostAnswer]]) -> CallOutcome:
    """Send the requests of a conversation, and return its outcome."""
    try:
        request = next(conversation)
        while True:
            request = conversation.send(await send(request))
    except StopIteration as end:
        outcome: CallOutcome = end.value
        return outcome


def list_tools(version: str | None = None) -> Conversation:
    """Return a conversation that requests all pages of the list of tools. Its result has the tools of all pages."""
    return _converse("tools/list", {}, version)


def make_request(method: str, params: Mapping[str, Json], version: str | None = None) -> Conversation:
    """Return a conversation with one request of any method."""
    return _converse(method, dict(params), version)


def _converse(method: str, params: dict[str, Json], version: str | None) -> Conversation:
    if version is None or version in MODERN_VERSIONS:
        peer = _Peer(version or MODERN_VERSIONS[-1])
        outcome = yield from _ask_all(peer, method, params)
        if version is not None or _is_modern(outcome):
            return outcome
    peer = _Peer(version or LEGACY_VERSIONS[-1])
    refused = yield from _shake_hands(peer)
    outcome = refused or (yield from _ask_all(peer, method, params))
    if peer.session is not None:
        yield Post(tuple(peer.headers()), b"", "DELETE")
    return outcome


def _is_modern(outcome: CallOutcome) -> bool:
    """Return whether an answer may come from a server, or a proxy, that understood a request of the newest version.

    Servers that did not understand it answer 400, 404 or 405. Servers that refuse it with one of these statuses send an
    error of the newest version.
    """
    if outcome.answer.status not in (400, 404, 405):
        return True
    if outcome.error is None:
        return False
    if outcome.error.code == _UNSUPPORTED:
        data = outcome.error.data
        supported = data.get("supported") if isinstance(data, dict) else None
        return not (isinstance(supported, list) and any(version in LEGACY_VERSIONS for version in supported))
    return outcome.error.code in _MODERN_ERRORS or (outcome.answer.status == 404 and outcome.error.code == _NOT_FOUND)


class _Peer:
    """The version that the server speaks, and the session that it has opened."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.session: str | None = None
        self.is_negotiated = version in MODERN_VERSIONS
        self._last_id = 0

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of every request."""
        made = [("accept", _ACCEPT)]
        if self.is_negotiated:
            made.append((tool_lists.PROTOCOL_VERSION, self.version))
        if self.session is not None:
            made.append((tool_lists.SESSION, self.session))
        return made

    def notify(self, method: str) -> Post:
        """Return a notification."""
        return self._post({"jsonrpc": "2.0", "method": method}, [])

    def request(self, method: str, params: dict[str, Json]) -> tuple[int, Post]:
        """Return a request and its id."""
        self._last_id += 1
        message: dict[str, Json] = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        mirrored: list[tuple[str, str]] = []
        if self.version in MODERN_VERSIONS:
            meta: dict[str, Json] = {
                _META + "protocolVersion": self.version,
                _META + "clientInfo": dict(_CLIENT),
                _META + "clientCapabilities": {},
            }
            message["params"] = {**params, "_meta": meta}
            mirrored.append((tool_lists.METHOD, method))
            if isinstance(name := params.get(NAMED.get(method, "")), str):
                mirrored.append((tool_lists.NAME, tool_lists.encode_value(name)))
        return self._last_id, self._post(message, mirrored)

    def _post(self, message: dict[str, Json], more: list[tuple[str, str]]) -> Post:
        made = [*self.headers(), ("content-type", "application/json"), *more]
        return Post(tuple(made), json.dumps(message, separators=(",", ":")).encode())


def _shake_hands(peer: _Peer) -> Generator[Post, PostAnswer, CallOutcome | None]:
    """Do the handshake of older versions. Return an outcome only if the server refuses it."""
    params: dict[str, Json] = {"protocolVersion": peer.version, "capabilities": {}, "clientInfo": dict(_CLIENT)}
    outcome = yield from _ask(peer, "initialize", params)
    if outcome.result is None:
        return outcome
    version = outcome.result.get("protocolVersion")
    if version not in LEGACY_VERSIONS:
        raise BadMessage(MessageProblem.VERSION)
    peer.version, peer.is_negotiated = str(version), True
    peer.session = outcome.answer.header(tool_lists.SESSION)
    answer = yield peer.notify("notifications/initialized")
    return None if answer.status < 400 else CallOutcome("notifications/initialized", peer.version, answer)


def _ask_all(peer: _Peer, method: str, params: dict[str, Json]) -> Conversation:
    """Send a request, and requests for the further pages of a list."""
    outcome = yield from _ask(peer, method, params)
    tools: list[Json] = []
    for _ in range(MAX_PAGES):
        if method != "tools/list" or outcome.result is None:
            return outcome
        page, cursor = outcome.result.get("tools"), outcome.result.get("nextCursor")
        if not isinstance(page, list):
            raise BadMessage(MessageProblem.TOOLS)
        tools += page
        if cursor is None:
            whole = {**outcome.result, "tools": tools}
            return CallOutcome(method, peer.version, outcome.answer, whole)
        outcome = yield from _ask(peer, method, {**params, "cursor": cursor})
    raise BadMessage(MessageProblem.TOO_MANY)


def _ask(peer: _Peer, method: str, params: dict[str, Json]) -> Conversation:
    identifier, request = peer.request(method, params)
    answer = yield request
    response = _find_response(answer, identifier)
    if response is None:
        return CallOutcome(method, peer.version, answer)
    result, error = response.get("result"), response.get("error")
    if isinstance(error, dict) and result is None:
        code, message = error.get("code"), error.get("message")
        if type(code) is int and isinstance(message, str):
            return CallOutcome(method, peer.version, answer, error=RpcError(code, message, error.get("data")))
    elif isinstance(result, dict) and error is None:
        return CallOutcome(method, peer.version, answer, result)
    raise BadMessage(MessageProblem.NOT_A_MESSAGE)


def _find_response(answer: PostAnswer, identifier: int) -> dict[str, Json] | None:
    """Return the response to a request; None if the answer is not from an MCP server.

    An error about an unreadable request has no id, or null.
    """
    content_type = (answer.header("content-type") or "").partition(";")[0].strip().lower()
    if content_type == "text/event-stream":
        texts = [event.data for event in read_events(answer.body, _MAX_BYTES) if event.data]
    elif content_type == "application/json" and answer.body:
        texts = [answer.body]
    else:
        return None
    try:
        messages = [read_json(decode_text(text, _MAX_BYTES)) for text in texts]
    except BadMessage:
        if answer.status < 300:
            raise
        return None
    for message in messages:
        if _is_response(message, identifier, refused=answer.status >= 400):
            return message
    if answer.status < 300:
        raise BadMessage(MessageProblem.NOT_A_MESSAGE)
    return None


def _is_response(message: Json, identifier: int, *, refused: bool) -> TypeGuard[dict[str, Json]]:
    if not isinstance(message, dict) or "method" in message:
        return False
    if message.get("id") == identifier:
        return "result" in message or "error" in message
    return refused and "error" in message
