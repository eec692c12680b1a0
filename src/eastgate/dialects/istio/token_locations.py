"""Finds the tokens of a request where a rule looks for them, as Envoy's jwt_authn does.

Every value of a header is a token, behind the first occurrence of its prefix; of a parameter and of a cookie the first
value is. A rule that names no location looks in the Authorization header and in the parameter `access_token`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from eastgate.basics.regexes import regex
from eastgate.dialects.istio.authentications import HeaderLocation, JwtRule
from eastgate.ir import Known, TakenOff
from eastgate.ir.attributes import TARGET, Attribute, query
from eastgate.ir.fields import BLANKS, HeaderValues, spellings_in_query
from eastgate.ir.matchers import values_of

_BEARER: Final = HeaderLocation("authorization", "Bearer ")
_PARAMETER: Final = "access_token"
_TOKEN_CHARACTER: Final = regex(r"[A-Za-z0-9_.-]")


def _headers(rule: JwtRule) -> tuple[HeaderLocation, ...]:
    return rule.headers if _has_locations(rule) else (_BEARER,)


def _params(rule: JwtRule) -> tuple[str, ...]:
    return rule.params if _has_locations(rule) else (_PARAMETER,)


def _has_locations(rule: JwtRule) -> bool:
    return bool(rule.headers or rule.params or rule.cookies)


def locations_are_known(
    rule: JwtRule, values: Mapping[Attribute, Known], headers: HeaderValues | None, *, is_all: bool
) -> bool:
    """Return whether enough of a request is known to say which tokens it has for a rule.

    `is_all`: it has no headers but these.
    """
    names = {*(location.name for location in _headers(rule)), *(["cookie"] if rule.cookies else [])}
    if not is_all and not names <= (headers or HeaderValues()).keys():
        return False
    return not _params(rule) or TARGET in values


def tokens_in(rule: JwtRule, values: Mapping[Attribute, Known], headers: HeaderValues) -> list[str]:
    """Return the tokens that a rule finds, in the order in which Envoy lists them."""
    return [
        *_in_headers(sorted(_headers(rule), key=lambda each: each.name + each.prefix), headers),
        *_in_query(sorted(_params(rule)), values),
        *_in_cookies(sorted(rule.cookies), headers),
    ]


def take_off(rule: JwtRule, values: Mapping[Attribute, Known], headers: HeaderValues) -> TakenOff:
    """Return the changes that remove all tokens which a rule finds. If it forwards them, those in headers stay."""
    found = {each.name for each in _headers(rule) if any(True for _ in _in_headers([each], headers))}
    if rule.forwards:
        return TakenOff(headers=tuple((name, headers[name][0]) for name in sorted(found) if len(headers[name]) == 1))
    target = str(values.get(TARGET) or "")
    parameters = tuple(spelled for name in _params(rule) for spelled in spellings_in_query(target, name))
    return TakenOff(tuple(sorted(found)), parameters=parameters, cookies=rule.cookies)


def _in_headers(locations: list[HeaderLocation], headers: HeaderValues) -> Iterator[str]:
    for location in dict.fromkeys(locations):
        for value in headers.get(location.name, ()):
            before, prefix, _ = value.partition(location.prefix) if location.prefix else ("", "", value)
            if prefix != location.prefix:
                continue
            begin = _TOKEN_CHARACTER.search(value, len(before) + len(prefix)) if prefix else None
            yield value[begin.start() :] if begin is not None else value


def _in_query(names: list[str], values: Mapping[Attribute, Known]) -> Iterator[str]:
    for name in dict.fromkeys(names):
        given = values_of(values.get(query(name)))
        if given:
            yield str(given[0])


def _in_cookies(names: list[str], headers: HeaderValues) -> Iterator[str]:
    cookies: dict[str, str] = {}
    for line in headers.get("cookie", ()):
        for part in line.split(";"):
            name, equals, value = part.strip(BLANKS).partition("=")
            if equals:
                cookies.setdefault(name, value.removeprefix('"').removesuffix('"') if len(value) > 1 else value)
    yield from (cookies[name] for name in dict.fromkeys(names) if name in cookies)
