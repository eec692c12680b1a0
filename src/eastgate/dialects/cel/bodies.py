"""`requestBodyJSON(pointer)`: a value in the body of a request, which is JSON, by a JSON Pointer (RFC 6901)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

REQUEST_BODY_JSON: Final = "requestBodyJSON"
BODY: Final = ("request", "body")
"""Where the body is in a document."""
_DEEPEST: Final = 64  # objects and arrays inside each other


class _Current(threading.local):
    """The body of the request that this thread evaluates an expression for: functions see their arguments only."""

    body: object = None


_current = _Current()


@contextmanager
def reading_body(body: object) -> Iterator[None]:
    """Let expressions of this thread look at a body."""
    before, _current.body = _current.body, body
    try:
        yield
    finally:
        _current.body = before


def body_declarations(cel: Any) -> list[Any]:
    """Return the function, for an environment of the core."""
    overload = cel.Overload(
        id=REQUEST_BODY_JSON, return_type=cel.Type.DYN, parameters=[cel.Type.STRING], impl=_request_body_json
    )
    return [cel.FunctionDecl(REQUEST_BODY_JSON, [overload])]


def _request_body_json(pointer: object) -> object:
    """Return the value, or null where the body has none. A body that is not JSON to every reader is an error."""
    from eastgate.reading.strict_json import read_json

    if not isinstance(pointer, str) or not isinstance(_current.body, str):
        raise TypeError("the request has no body that could be read")
    value: object = read_json(_current.body.encode(), _DEEPEST)
    if pointer and not pointer.startswith("/"):
        return None
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and _is_index(name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return _doubles(value)


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 10 and (name == "0" or not name.startswith("0"))


def _doubles(value: object) -> object:
    """Return the value with all numbers as doubles, as documents have them."""
    match value:
        case bool() | None | str():
            return value
        case int() | float():
            return float(value)
        case list():
            return [_doubles(item) for item in value]
        case dict():
            return {key: _doubles(item) for key, item in value.items()}
    raise TypeError("the body is not JSON")
