"""Why a message cannot be read for certain."""

from __future__ import annotations

from enum import StrEnum


class MessageProblem(StrEnum):
    """What is wrong with a message, or with the request that carries it. The values are for machines."""

    HTTP_METHOD = "http-method"
    """Not POST, GET or DELETE, or a header that asks for another method than that of the request."""
    CONTENT_TYPE = "content-type"
    """Not exactly one, and that one `application/json` in UTF-8."""
    CONTENT_ENCODING = "content-encoding"
    UNEXPECTED_BODY = "unexpected-body"
    HEADERS = "headers"
    """Headers that repeat the method or the name, and do not say what the body says."""
    TOO_LARGE = "too-large"
    TOO_DEEP = "too-deep"
    TOO_MANY = "too-many-messages"
    ENCODING = "encoding"
    """Not UTF-8, or a byte order mark."""
    SYNTAX = "syntax"
    """Not JSON: also NaN and Infinity, bytes behind the value, control characters in strings."""
    SURROGATE = "lone-surrogate"
    DUPLICATE_KEY = "duplicate-key"
    LOOKALIKE_KEY = "lookalike-key"
    """A key that some readers take for another key, such as `Method`, or that is not visible ASCII."""
    NOT_A_MESSAGE = "not-a-message"
    """Neither an object nor an array of objects; an object that is no request, notification or response."""
    EMPTY_BATCH = "empty-batch"
    VERSION = "jsonrpc-version"
    METHOD = "method"
    """Not a string of visible ASCII, or a method of MCP in another spelling, such as `Tools/Call`."""
    PARAMS = "params"
    NAME = "name"
    """The name or URI that the method needs is missing, not a string, empty, or has control characters."""
    ID = "id"
    AMBIGUOUS_KIND = "ambiguous-kind"
    """Both a request and a response, or a response with both a result and an error."""
    TOOLS = "tools"
    """`result.tools` that is not a list of objects with names."""


class BadMessage(ValueError):  # noqa: N818 - says what it is
    """A message that cannot be read for certain, and must not be passed on."""

    def __init__(self, problem: MessageProblem) -> None:
        super().__init__(problem.value)
        self.problem = problem
