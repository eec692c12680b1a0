"""Headers and queries of a request, as policies compare them. Either may hold several values of one name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import parse_qsl, unquote_plus

BLANKS = " \t"  # around the value of a header they are not part of it
Headers: TypeAlias = Mapping[str, str | Sequence[str]]

# These words in `Connection` name no header that a proxy takes away; proxies refuse a request that names the others.
_NOT_NAMED = frozenset({"close", "connection", "http2-settings", "keep-alive", "te", "upgrade"})
_NOT_NAMED |= {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"}


def steers_proxy(name: str) -> bool:
    """Return whether a header decides where or how a proxy sends a request on: no authorizer may set or remove it."""
    lowered = name.lower()
    return lowered in _OF_CONNECTION or lowered.startswith((":", "x-eastgate-", "x-envoy-"))


_OF_CONNECTION = frozenset(
    {"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"}
    | {"upgrade"}
)


def each_header(headers: Headers) -> Iterator[tuple[str, str]]:
    """Yield each header with each of its values, in order."""
    for name, value in headers.items():
        yield from ((name, text) for text in ([value] if isinstance(value, str) else value))


class HeaderValues(dict[str, tuple[str, ...]]):
    """Headers as policies compare them. `header_values` makes them, and nothing changes them afterwards."""


def header_values(headers: Headers) -> HeaderValues:
    """Return all values of each header, by its name in lower case.

    A header that `Connection` names ends at the proxy: neither policies nor the application see it.
    """
    if isinstance(headers, HeaderValues):
        return headers
    by_name = HeaderValues()
    for spelled, given in headers.items():
        name = spelled.lower()
        values = (given.strip(BLANKS),) if isinstance(given, str) else tuple(value.strip(BLANKS) for value in given)
        if values:
            by_name[name] = (*by_name[name], *values) if name in by_name else values
    if "connection" not in by_name:
        return by_name
    hop_by_hop = {word.strip(BLANKS).lower() for value in by_name.get("connection", ()) for word in value.split(",")}
    hop_by_hop -= _NOT_NAMED
    return HeaderValues((name, values) for name, values in by_name.items() if name not in hop_by_hop)


def query_of(target: str) -> str:
    """Return the query behind a path, with its question mark; empty where there is none."""
    return "".join(target.partition("#")[0].partition("?")[1:])


def query_values(target: str) -> dict[str, tuple[str, ...]]:
    """Return all values of each parameter of the query behind a path."""
    by_name: dict[str, tuple[str, ...]] = {}
    for name, value in parse_qsl(query_of(target)[1:], keep_blank_values=True):
        by_name[name] = (*by_name.get(name, ()), value)
    return by_name


def spellings_in_query(target: str, name: str) -> tuple[str, ...]:
    """Return all spellings of the name of a parameter that occur in the query of a path."""
    names = (part.partition("=")[0] for part in query_of(target)[1:].split("&"))
    return tuple(dict.fromkeys(spelled for spelled in names if unquote_plus(spelled) == name))


def cookies_without(cookies: str, names: Collection[str]) -> str:
    """Return the value of a Cookie header without the cookies of these names."""
    parts = (part.strip(BLANKS) for part in cookies.split(";"))
    return "; ".join(part for part in parts if part and part.partition("=")[0] not in names)
