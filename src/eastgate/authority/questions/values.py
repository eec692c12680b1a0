"""The attributes that a question sets on its requests, for every caller and every entry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from eastgate.basics.regexes import regex
from eastgate.cluster.question import Question
from eastgate.cluster.question_errors import BAD_ATTRIBUTE, QuestionError
from eastgate.ir import Known, known
from eastgate.ir.addresses import comparable_host, comparable_sni, is_host
from eastgate.ir.attributes import (
    AUTHORITY,
    BAD_HOST,
    HANDED_PATH,
    HOST,
    MCP_METHOD,
    MCP_TOOL,
    METHOD,
    PATH,
    SENT_PATH,
    SNI,
    TARGET,
    URL_PATH,
    Attribute,
    claim,
    header,
    header_values,
    query,
    query_of,
    query_values,
)
from eastgate.ir.paths import comparable_path, handed_path, is_respelled, sent_path

Values = dict[Attribute, Known]

_PROTOCOLS = ("HTTP/1.0", "HTTP/1.1", "HTTP/2", "HTTP/3")


def request_values(question: Question) -> Values:
    """Return the known attributes of every request of a question. Raises QuestionError for impossible values."""
    values = _http(question)
    if question.mcp_method is not None or question.tool is not None:
        values |= message_values(question)
    elif question.method in _WITHOUT_BODY:
        values |= _NO_MESSAGE
    if question.no_token and (question.claims is not None or question.token is not None):
        raise QuestionError(BAD_ATTRIBUTE, "a request without a token has no claims", "leave out one of the two")
    if question.claims is not None:
        claims = question.claims.items()
        values |= {claim(name): value for name, value in claims if isinstance(value, str | int)}
    return values


def _http(question: Question) -> Values:
    values: Values = {}
    if question.host is not None:
        values |= host_values(question.host)
    if question.http_protocol is not None and question.http_protocol not in _PROTOCOLS:
        message = f"`{question.http_protocol}` is not a version of HTTP"
        raise QuestionError(BAD_ATTRIBUTE, message, f"write one of {', '.join(_PROTOCOLS)}")
    if question.method is not None:
        values[METHOD] = question.method
    if (path := question.path) is not None:
        values |= _remembered_path(path) if len(path) <= _MAX_PATH_CHARS else _read_path(path)
    if question.sni is not None:
        values[SNI] = comparable_sni(question.sni)
    if question.headers:
        for name, every in header_values(question.headers).items():
            values[_remembered_header(name) if len(name) <= _MAX_NAME_CHARS else header(name)] = known(every)
    return values


def host_values(host: str) -> Values:
    """Return all attributes that follow from a host."""
    values: Values = {HOST: comparable_host(host), AUTHORITY: host}
    return values if is_host(host) else {**values, BAD_HOST: host}


# A path without an empty segment or one that begins with a dot is the same in every form
_UNRESERVED = regex(r"/[-A-Za-z0-9._~/]*", re.ASCII)
_MAX_PATHS, _MAX_PATH_CHARS = 4096, 512  # cached paths, and characters of each


def path_values(path: str) -> Mapping[Attribute, Known]:
    """Return all attributes that follow from a path with its query. Raises QuestionError for any other text."""
    return _remembered_path(path) if len(path) <= _MAX_PATH_CHARS else _read_path(path)


def _read_path(path: str) -> Mapping[Attribute, Known]:
    if _UNRESERVED.fullmatch(path) and "/." not in path and "//" not in path:
        return {PATH: path, SENT_PATH: path, URL_PATH: path, TARGET: path}
    if not path.startswith("/") and path != "*":
        raise QuestionError(BAD_ATTRIBUTE, f"`{path}` is not a path", f"write /{path}")
    handed = handed_path(path)
    values: Values = {PATH: comparable_path(path), SENT_PATH: sent_path(path)}
    values |= {URL_PATH: handed, TARGET: handed + query_of(path)}
    if is_respelled(handed):
        values[HANDED_PATH] = handed
    return values | {query(name): known(every) for name, every in query_values(path).items()}


_remembered_path = lru_cache(_MAX_PATHS)(_read_path)


_MAX_NAMES, _MAX_NAME_CHARS = 1024, 64  # cached headers, and characters of each
_remembered_header = lru_cache(_MAX_NAMES)(header)


_NO_MESSAGE: Values = {MCP_METHOD: None, MCP_TOOL: None}
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})  # methods without a JSON-RPC message
_WITH_NAME = ("tools/call", "prompts/get", "resources/read", "resources/subscribe", "resources/unsubscribe")


def message_values(question: Question) -> Values:
    """Return the attributes that follow from the MCP message of a question."""
    values: Values = {MCP_METHOD: question.mcp_method or "tools/call"}
    if question.tool is not None or values[MCP_METHOD] not in _WITH_NAME:
        values[MCP_TOOL] = question.tool
    if question.is_bare_message:
        values[METHOD] = "POST"
    return values
