"""Where a caller's credential is in a request: one place per identity, exactly as the scheme says.

A credential that is there twice is not taken at all: the service behind may read the other one. Nothing is decoded,
since Authorino does not, and a prefix in the Authorization header is compared with its letter case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from eastgate.authconfig.facts import RequestFacts
from eastgate.authconfig.findings import NotKnown, Refused
from eastgate.authconfig.model import Credentials, Where
from eastgate.authconfig.secrecy import MASK
from eastgate.policy.attributes import UNKNOWN

__all__ = ["all_credentials", "credential", "described", "masked_headers", "masked_path"]

_SECRET_HEADERS: Final = ("authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token")
_SECRET_PARAMETERS: Final = ("access_token", "api_key", "apikey")


def credential(credentials: Credentials, request: RequestFacts) -> str | Refused | NotKnown:
    """The credential, why there is none, or what must be known to tell."""
    if credentials in request.presented:
        return request.presented[credentials]
    if credentials.where is Where.QUERY:
        if request.path is UNKNOWN:
            return NotKnown("the path")
        found = _in_query(request.path, credentials.key)
    else:
        if request.headers is UNKNOWN:
            return NotKnown("the headers")
        found = _in_headers(request.headers, credentials)
    match [text for text in found if text]:
        case [text]:
            return text
        case []:
            return Refused(f"There is no credential in {described(credentials)}.")
        case _:
            return Refused(f"There is more than one credential in {described(credentials)}.")


def described(credentials: Credentials) -> str:
    """The place, for a sentence."""
    match credentials.where:
        case Where.AUTHORIZATION_HEADER:
            return f"the Authorization header after {credentials.key!r}"
        case Where.CUSTOM_HEADER:
            return f"the header {credentials.key!r}"
        case Where.QUERY:
            return f"the query parameter {credentials.key!r}"
        case Where.COOKIE:
            return f"the cookie {credentials.key!r}"


def _in_headers(headers: Mapping[str, str], credentials: Credentials) -> list[str]:
    match credentials.where:
        case Where.AUTHORIZATION_HEADER:
            prefix = f"{credentials.key} "
            value = headers.get("authorization", "")
            return [value.removeprefix(prefix)] if value.startswith(prefix) else []
        case Where.COOKIE:
            prefix = f"{credentials.key}="
            parts = (part.strip() for part in headers.get("cookie", "").split(";"))
            return [part.removeprefix(prefix) for part in parts if part.startswith(prefix)]
        case _:
            return [headers.get(credentials.key.lower(), "")]


def _in_query(path: str, key: str) -> list[str]:
    _, _, query = path.partition("#")[0].partition("?")
    prefix = f"{key}="
    return [part.removeprefix(prefix) for part in query.split("&") if part.startswith(prefix)]


# For masking


def all_credentials(places: Iterable[Credentials], request: RequestFacts) -> Iterator[str]:
    """Everything in a request that is where a credential may be, good or not."""
    headers = request.headers if request.headers is not UNKNOWN else {}
    path = request.path if request.path is not UNKNOWN else ""
    yield from request.presented.values()
    for name in _SECRET_HEADERS:
        if value := headers.get(name):
            yield value
            if name.endswith("authorization"):
                yield value.partition(" ")[2]
    for place in places:
        yield from _in_query(path, place.key) if place.where is Where.QUERY else _in_headers(headers, place)
    for name in _SECRET_PARAMETERS:
        yield from _in_query(path, name)


def masked_headers(headers: Mapping[str, str], places: tuple[Credentials, ...]) -> dict[str, str]:
    """The headers without credentials."""
    secret = _secret_headers(places)
    return {name: MASK if name in secret else value for name, value in headers.items()}


@lru_cache(maxsize=256)
def _secret_headers(places: tuple[Credentials, ...]) -> frozenset[str]:
    custom = (place.key.lower() for place in places if place.where is Where.CUSTOM_HEADER)
    return frozenset((*_SECRET_HEADERS, *custom))


def masked_path(path: str, places: tuple[Credentials, ...]) -> str:
    """The path without credentials in its query."""
    if "?" not in path:
        return path
    return _secret_parameters(places).sub(rf"\g<1>{MASK}", path)


@lru_cache(maxsize=256)
def _secret_parameters(places: tuple[Credentials, ...]) -> re.Pattern[str]:
    keys = (place.key for place in places if place.where is Where.QUERY)
    names = "|".join(re.escape(name) for name in (*_SECRET_PARAMETERS, *keys))
    return re.compile(rf"([?&](?:{names})=)[^&#]*")
