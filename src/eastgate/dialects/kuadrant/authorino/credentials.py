"""Finds a caller's credential in a request, at the one location of each identity in the scheme.

Of several values with one name, the first counts, as in Authorino. Query parameters are URL-decoded; headers and
cookies are not. The prefix in the Authorization header is case-sensitive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import unquote_plus

from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts
from eastgate.dialects.kuadrant.authorino.model import Credentials, Where
from eastgate.dialects.kuadrant.authorino.outcomes import NotKnown, Refused
from eastgate.dialects.kuadrant.authorino.secrecy import MASK
from eastgate.ir import TakenOff
from eastgate.ir.attributes import UNKNOWN, spellings_in_query

_SECRET_HEADERS: Final = ("authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token")
_SECRET_PARAMETERS: Final = ("access_token", "api_key", "apikey")
_MALFORMED: Final = regex(r"%(?![0-9A-Fa-f]{2})")
_PARAMETER: Final = regex(r"([?&][^=&#]*=)[^&#]*")
_CONTROL: Final = regex(r"[\x00-\x1f\x7f]")


def credential(credentials: Credentials, request: RequestFacts) -> str | Refused | NotKnown:
    """Return the credential, the reason why there is none, or the unknown value that it depends on."""
    if credentials in request.presented:
        return request.presented[credentials] or _missing(credentials)
    if credentials.where is Where.QUERY:
        if request.path is UNKNOWN:
            return NotKnown("the path")
        candidates = _in_query(request.path, credentials.key)
    else:
        if request.headers is UNKNOWN:
            return NotKnown("the headers")
        candidates = _in_headers(request.headers, credentials)
    first = next(iter(candidates), "")
    return first or _missing(credentials)


def _missing(credentials: Credentials) -> Refused:
    return Refused(f"There is no credential in {describe_location(credentials)}.")


def describe_location(credentials: Credentials) -> str:
    """Describe a location, for use in a sentence."""
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
    """Return all values of a parameter, decoded as Go's net/url does: malformed parts are ignored."""
    before, _, query = path.partition("#")[0].partition("?")
    if not query:
        return []
    if _MALFORMED.search(before) or _CONTROL.search(path):
        return []
    parts = (part.partition("=") for part in query.split("&") if ";" not in part and not _MALFORMED.search(part))
    return [unquote_plus(value) for name, _, value in parts if unquote_plus(name) == key]


# For the application


def take_off(credentials: Credentials, request: RequestFacts) -> TakenOff:
    """Return the changes that remove everything at the location of a credential."""
    match credentials.where:
        case Where.AUTHORIZATION_HEADER:
            return TakenOff(("authorization",))
        case Where.CUSTOM_HEADER:
            return TakenOff((credentials.key.lower(),))
        case Where.COOKIE:
            return TakenOff(cookies=(credentials.key,))
        case Where.QUERY:
            path = request.path if request.path is not UNKNOWN else ""
            return TakenOff(parameters=spellings_in_query(path, credentials.key))


# For masking


def all_credentials(locations: Iterable[Credentials], request: RequestFacts) -> Iterator[str]:
    """Yield all texts of a request at locations of credentials, valid or not."""
    headers = request.headers if request.headers is not UNKNOWN else {}
    path = request.path if request.path is not UNKNOWN else ""
    yield from filter(None, request.presented.values())
    for name in _SECRET_HEADERS:
        if value := headers.get(name):
            yield value
            if name.endswith("authorization"):
                yield value.partition(" ")[2]
    for location in locations:
        yield from _in_query(path, location.key) if location.where is Where.QUERY else _in_headers(headers, location)
    for name in _SECRET_PARAMETERS:
        yield from _in_query(path, name)


def masked_headers(headers: Mapping[str, str], locations: tuple[Credentials, ...]) -> dict[str, str]:
    """Return the headers without credentials."""
    secret = secret_headers(locations)
    return {name: MASK if name in secret else value for name, value in headers.items()}


@lru_cache(maxsize=256)
def secret_headers(locations: tuple[Credentials, ...]) -> frozenset[str]:
    """Return the headers whose values may be credentials."""
    custom = (location.key.lower() for location in locations if location.where is Where.CUSTOM_HEADER)
    return frozenset((*_SECRET_HEADERS, *custom))


def masked_path(path: str, locations: tuple[Credentials, ...]) -> str:
    """Return the path without credentials in its query."""
    secret = {*_SECRET_PARAMETERS, *(location.key for location in locations if location.where is Where.QUERY)}

    def masked(part: re.Match[str]) -> str:
        return f"{part[1]}{MASK}" if unquote_plus(part[1][1:-1]) in secret else part[0]

    return _PARAMETER.sub(masked, path) if "?" in path else path
