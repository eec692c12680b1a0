"""The filters of routes, from Kubernetes data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from eastgate.basics.regexes import regex
from eastgate.cluster import codes
from eastgate.cluster.fields import Data, mapping, mappings, number, text, texts
from eastgate.cluster.filters import (
    Cors,
    HeaderModifier,
    PathModifier,
    Redirect,
    RouteFilter,
    Unsupported,
    UnsupportedFilter,
    UrlRewrite,
)
from eastgate.cluster.shapes import FLAG, PORT, TEXT, TEXTS, Fields, each, first_of_each, record
from eastgate.reading.manifests.shapes.constraints import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Choice, Field, ListOf, Record, Text, Whole

T = TypeVar("T")

_FIELDS = {
    "RequestHeaderModifier": "requestHeaderModifier",
    "ResponseHeaderModifier": "responseHeaderModifier",
    "RequestMirror": "requestMirror",
    "RequestRedirect": "requestRedirect",
    "URLRewrite": "urlRewrite",
    "CORS": "cors",
    "ExternalAuth": "externalAuth",
    "ExtensionRef": "extensionRef",
}
_REPEATABLE = ("RequestMirror", "ExternalAuth", "ExtensionRef")
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_HEADER_NAME = regex(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+")
_HEADER_VALUE = regex(r"[!-~]([\t -~]*[!-~])?")
_PRECISE_HOSTNAME = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ORIGIN = regex(r"\*|https?://(((\*\.)?([a-zA-Z0-9\-]+\.)*[a-zA-Z0-9-]+|\*)(:[0-9]{1,5})?)")
_FRAMING = (
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
)
"""Headers that control the destination or the end of a message. A filter that changed them could make the proxy and its
neighbours disagree about the message.
"""
_OWN_HEADERS = ("x-eastgate-", "x-envoy-")


# Shapes


def _matching(pattern: str, what: str, longest: int, way_out: str) -> Text[None]:
    expression = regex(pattern)

    def problems(value: str) -> Iterator[Problem]:
        if not expression.fullmatch(value) or len(value) > longest:
            yield Problem(codes.BAD_VALUE, f"{value!r} is not {what}", way_out)

    return Text(what, Demand(problems))


def _union_problems(of: Data) -> Iterator[Problem]:
    """Yield the problems of a filter: it must have the field of its type, and no other."""
    type_ = text(of, "type")
    for name, field in _FIELDS.items():
        if name == type_ and of.get(field) is None:
            yield Problem(codes.MISSING, f"a {name} filter needs `{field}`", f"write `{field}`")
        elif name != type_ and of.get(field) is not None:
            message = f"a {type_} filter has no `{field}`"
            yield Problem(codes.BAD_VALUE, message, f"remove it, or write `type: {name}`", (field,))


def _path_modifier_problems(path: Data) -> Iterator[Problem]:
    for type_, field in (("ReplaceFullPath", "replaceFullPath"), ("ReplacePrefixMatch", "replacePrefixMatch")):
        value = text(path, field)
        if path.get("type") == type_ and value is None:
            yield Problem(codes.MISSING, f"{type_} needs `{field}`", f"write `{field}`")
        elif path.get("type") != type_ and value is not None:
            yield Problem(codes.BAD_VALUE, f"`{field}` needs `type: {type_}`", f"write `type: {type_}`", (field,))
        if value is not None and any(not "!" <= character <= "~" for character in value):
            message = f"{value!r} has a character that must be encoded"
            yield Problem(codes.BAD_PATH, message, "encode the character as %XX", (field,))


def _redirect_problems(redirect: Data) -> Iterator[Problem]:
    status = number(redirect, "statusCode")
    if status is not None and status not in _REDIRECT_STATUSES:
        way_out = f"write one of {', '.join(map(str, _REDIRECT_STATUSES))}"
        yield Problem(codes.BAD_VALUE, f"{status} is not the status of a redirect", way_out, ("statusCode",))


def _cors_problems(cors: Data) -> Iterator[Problem]:
    for field in ("allowOrigins", "allowMethods", "allowHeaders"):
        values = texts(cors, field)
        if "*" in values and len(values) > 1:
            yield Problem(codes.BAD_VALUE, "`*` stands alone", "remove the others, or the `*`", (field,))


_NAME = _matching(_HEADER_NAME.pattern, "the name of a header", 256, "write a name such as x-request-id")
_VALUE = _matching(_HEADER_VALUE.pattern, "the value of a header", 4096, "write visible ASCII characters")
_HOSTNAME = _matching(
    _PRECISE_HOSTNAME.pattern, "a hostname", 253, "write a name such as www.example.com, without wildcard and port"
)
_ORIGINS: ListOf[None] = ListOf(
    _matching(_ORIGIN.pattern, "an origin", 253, "write `*`, or an origin such as https://www.example.com")
)
_NAMES: ListOf[None] = ListOf(_NAME)
_first_by_name = first_of_each(lambda header: str(header[0]).lower())
_SET = each(
    {"name": Field(_NAME, required=True), "value": Field(_VALUE, required=True)},
    make=lambda name, value: (name, value),
    together=_first_by_name,
)


def _headers(type_: str) -> Record[None]:
    return record({"set": _SET, "add": _SET, "remove": _NAMES}, make=partial(HeaderModifier, type_))


def _path_modifier(
    *,
    type: str = "",  # noqa: A002 - the name in a manifest
    replace_full_path: str = "",
    replace_prefix_match: str = "",
) -> PathModifier | None:
    match type:
        case "ReplaceFullPath":
            return PathModifier(replace_full_path or "/")
        case "ReplacePrefixMatch":
            return PathModifier(replace_prefix_match, prefix=True)
        case _:
            return None


def _filter(type: str, **written: RouteFilter) -> RouteFilter:  # noqa: A002
    return next((of for of in written.values() if of.type == type), UnsupportedFilter(type))


_PATH = record(
    {
        "type": Field(Choice(("ReplaceFullPath", "ReplacePrefixMatch")), required=True),
        "replaceFullPath": TEXT,
        "replacePrefixMatch": TEXT,
    },
    Demand(_path_modifier_problems),
    make=_path_modifier,
)
_MODIFIERS: Fields = {
    "type": Field(TEXT, required=True),
    "requestHeaderModifier": _headers(HeaderModifier.REQUEST),
    "responseHeaderModifier": _headers(HeaderModifier.RESPONSE),
}
_OTHERS = dict.fromkeys(("requestMirror", "externalAuth", "extensionRef"), record({}))
_REDIRECT = record(
    {
        "scheme": Choice(("http", "https")),
        "hostname": _HOSTNAME,
        "path": _PATH,
        "port": PORT,
        "statusCode": Field(Whole(100, 999, codes.BAD_VALUE), into="status"),
    },
    Demand(_redirect_problems),
    make=Redirect,
)
_CORS = record(
    {
        "allowOrigins": _ORIGINS,
        "allowCredentials": FLAG,
        "allowMethods": TEXTS,
        "allowHeaders": _NAMES,
        "exposeHeaders": _NAMES,
        "maxAge": Whole(1, 2**31 - 1, codes.BAD_VALUE),
    },
    Demand(_cors_problems),
    make=Cors,
)
_REWRITE = record({"hostname": _HOSTNAME, "path": _PATH}, make=UrlRewrite)
GRPC_FILTERS = each({**_MODIFIERS, **_OTHERS}, Demand(_union_problems), make=_filter)
FILTERS = each(
    {**_MODIFIERS, "requestRedirect": _REDIRECT, "urlRewrite": _REWRITE, "cors": _CORS, **_OTHERS},
    Demand(_union_problems),
    make=_filter,
)


def filter_problems(holder: Data) -> Iterator[Problem]:
    """Yield the problems of the filters of a rule or a backend as a whole."""
    types = [text(of, "type") or "" for of in mappings(holder, "filters")]
    for type_, count in Counter(types).items():
        if count > 1 and type_ in _FIELDS and type_ not in _REPEATABLE:
            yield Problem(codes.BAD_VALUE, f"{type_} is there {count} times", "write it once", ("filters",))
    if "RequestRedirect" in types and "URLRewrite" in types:
        message = "a request is redirected or rewritten, not both"
        yield Problem(codes.BAD_VALUE, message, "remove RequestRedirect or URLRewrite", ("filters",))


def replaces_prefix(holder: Data) -> bool:
    """Return whether a filter of a rule or a backend replaces the prefix that the rule's match names."""
    return any(
        mapping(mapping(of, field), "path").get("type") == "ReplacePrefixMatch"
        for of in mappings(holder, "filters")
        for field in ("requestRedirect", "urlRewrite")
    )


def supported(
    make: Callable[..., T], *, filters: tuple[RouteFilter, ...] = (), session_persistence: bool = False, **fields: Any
) -> T:
    """Return a rule or a backend with the list of its parts that Eastgate's gateway cannot do."""
    unsupported = list(_unsupported(filters))
    if session_persistence:
        unsupported.append(Unsupported("sessionPersistence"))
    return make(filters=filters, unsupported=tuple(unsupported), **fields)


def _unsupported(filters: Iterable[RouteFilter]) -> Iterator[Unsupported]:
    for of in filters:
        match of:
            case UnsupportedFilter(type_):
                yield Unsupported(f"filter {type_}", may_refuse=type_ != "RequestMirror")
            case HeaderModifier():
                names = [*(name for name, _ in (*of.set, *of.add)), *of.remove]
                for name in names:
                    if name.lower() in _FRAMING or name.lower().startswith(_OWN_HEADERS):
                        yield Unsupported(f"{of.type} of the header {name}")
            case Redirect(path=PathModifier() as path) | UrlRewrite(path=PathModifier() as path):
                if not _is_path(path):
                    yield Unsupported(f"{of.type} to the path {path.value}")
            case _:
                pass


def _is_path(path: PathModifier) -> bool:
    """Return whether a path is absolute, and has no query and no fragment. A replaced prefix may be empty."""
    absolute = path.value.startswith("/") or (path.prefix and not path.value)
    return absolute and "?" not in path.value and "#" not in path.value
