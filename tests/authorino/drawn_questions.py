"""Draws requests to an AuthConfig from the values that it reads: paths, methods, credentials, claims and headers."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import quote

from tests.authorino.running import Manifest
from tests.authorino.serving import name_of, spec_of

COUNT = 40
_PATH = re.compile(r"/[A-Za-z0-9_./-]*")
_HEADER = re.compile(r"headers(?:\.|\[['\"])([a-z][a-z0-9-]*)")
_CLAIM = re.compile(r"auth\.identity\.([A-Za-z0-9_.]+)$")
_ADDRESSES = ["192.168.1.10", "123.45.6.78,10.0.0.1"]
_KEY = "api_key"


def questions(config: Manifest, secrets: tuple[Manifest, ...]) -> list[Manifest]:
    """Return some cases of a table about an AuthConfig: the same in every run."""
    spec = spec_of(config)
    host = next((each for each in spec["hosts"] if "*" not in each), spec["hosts"][0].replace("*", "any"))
    if not isinstance(spec.get("authentication") or {}, dict):
        return [_case(0, config, host, ("GET", "/"), {}, None)]
    texts = list(_texts(spec))
    paths = sorted({"/", "/hello", *(path for text in texts for path in _PATH.findall(text) if "//" not in path)})
    methods = ["GET", "POST", "DELETE"]
    credentials = [({}, ""), *_credentials(spec, secrets)]
    claims: list[Manifest | None] = [None, *_claims(spec)]
    headers = [{}, *({name: value} for text in texts for name in _HEADER.findall(text) for value in _ADDRESSES)]
    combined = list(product(methods, paths, credentials, claims, headers))
    chosen = random.Random(18).sample(combined, min(COUNT, len(combined)))  # noqa: S311 - not for secrets
    return [
        _case(number, config, host, (method, path + query), {**more, **header}, claim)
        for number, (method, path, (header, query), claim, more) in enumerate(chosen)
    ]


def _case(
    number: int, config: Manifest, host: str, line: tuple[str, str], headers: Manifest, claims: Manifest | None
) -> Manifest:
    case = {
        "name": f"{name_of(config)}, case {number}",
        "from": "anonymous",
        "to": f"authconfig:{name_of(config)}",
        "http": {"host": host, "method": line[0], "path": line[1], "headers": headers},
        "expect": "deny",  # the AuthConfig does not read it
    }
    return case if claims is None else {**case, "claims": claims}


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for each in value.values():
                yield from _texts(each)
        case list():
            for each in value:
                yield from _texts(each)


def _credentials(spec: Manifest, secrets: tuple[Manifest, ...]) -> Iterator[tuple[Manifest, str]]:
    """Yield headers and a query with each key at the location of each identity, and with a text that is no key."""
    keys = [each["stringData"][_KEY] for each in secrets if _KEY in each.get("stringData", {})]
    for identity, key in product((spec.get("authentication") or {}).values(), [*keys, "nonsense"]):
        match identity.get("credentials") or {}:
            case {"customHeader": {"name": name}}:
                yield {name.lower(): key}, ""
            case {"cookie": {"name": name}}:
                yield {"cookie": f"{name}={key}"}, ""
            case {"queryString": {"name": name}}:
                yield {}, f"?{name}={quote(key)}"
            case {"authorizationHeader": {"prefix": prefix}}:
                yield {"authorization": f"{prefix} {key}"}, ""
            case _:
                yield {"authorization": f"Bearer {key}"}, ""


def _claims(spec: Manifest) -> Iterator[Manifest]:
    """Yield claims of each issuer: none, and those that patterns compare, as a text and in a list."""
    patterns = [each for each in _patterns(spec) if _CLAIM.search(str(each.get("selector")))]
    for identity in (spec.get("authentication") or {}).values():
        issuer = (identity.get("jwt") or {}).get("issuerUrl")
        if issuer is None:
            continue
        own = {"iss": issuer, "sub": "john", "email_verified": True}
        yield {"iss": issuer, "sub": "john", "email_verified": False}
        yield own
        for pattern in patterns:
            for value in (pattern.get("value", ""), [pattern.get("value", ""), "more"]):
                yield own | _nested(pattern["selector"].removeprefix("auth.identity.").split("."), value)


def _nested(names: list[str], value: Any) -> Manifest:
    for name in reversed(names):
        value = {name: value}
    nested: Manifest = value
    return nested


def _patterns(value: Any) -> Iterator[Manifest]:
    if isinstance(value, dict):
        if "selector" in value and "operator" in value:
            yield value
        for each in value.values():
            yield from _patterns(each)
    if isinstance(value, list):
        for each in value:
            yield from _patterns(each)
