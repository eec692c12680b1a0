"""Conditions that the filter of a gateway evaluates, as CEL: the `when` of today's AuthPolicy.

Hosts, methods and paths of the rules of 2022 become predicates. Conditions of auth schemes become predicates if the
filter has the attributes that they read. A request that no predicate matches is allowed without authorization, so no
predicate may match less than its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from eastgate.basics.regexes import regex
from eastgate.cluster import Listener, World
from eastgate.cluster.routing.model import Routed
from eastgate.dialects.cel import CelProblem, compile_document_cel
from eastgate.dialects.kuadrant.authorino.model import All, AnyOf, CelPredicate, Condition, Pattern, PatternOperator
from eastgate.dialects.kuadrant.hosts import ANY, is_inside
from eastgate.dialects.kuadrant.proposal.model import HttpRule

# Hosts of the requests that reach rules of routes.


def arriving_hosts(ways: Sequence[Routed], world: World) -> Iterator[str]:
    """Yield each host, possibly with a wildcard, of the requests that may reach some rules."""
    yield from dict.fromkeys(host for rule in ways for host in hosts_on(rule, world))


def hosts_on(rule: Routed, world: World) -> list[str]:
    """Return the hosts that both the listener and the route of a rule accept."""
    listener = listener_of(rule, world)
    heard = (listener.hostname if listener is not None else None) or ANY
    routed = [host.lower() for host in rule.route.hostnames] or [ANY]
    met = [
        host if is_inside(host, heard.lower()) else heard.lower()
        for host in routed
        if _intersection(host, heard.lower())
    ]
    return list(dict.fromkeys(met))


def _intersection(host: str, other: str) -> bool:
    return is_inside(host, other) or is_inside(other, host)


def are_mixed_up(host: str, other: str) -> bool:
    """Return whether Authorino may confuse two hosts: it treats example.com as one of `*.example.com`."""
    pairs = ((host, other), (other, host))
    return any(is_inside(inner, outer) or outer == f"*.{inner}" for inner, outer in pairs)


def listener_of(rule: Routed, world: World) -> Listener | None:
    """Return the listener through which requests reach a rule, or None if no manifest declares it."""
    gateway = world.gateways.get(f"{rule.gateway.namespace}/{rule.gateway.name}") if rule.gateway is not None else None
    listeners = gateway.listeners if gateway is not None else ()
    return next((each for each in listeners if each.name == rule.listener), None)


def serves_tls(ways: Sequence[Routed], world: World) -> bool:
    """Return whether requests may reach some rules over TLS."""
    listeners = [listener_of(rule, world) for rule in ways]
    return any(listener is None or listener.protocol in ("HTTPS", "TLS") for listener in listeners)


HOST_START, HOST_END = "(?i)^(", ")[.]?(:[0-9]+)?$"
PATH_START, ANY_PATH, PATH_END = "^(", "[^?#]*", ")([?#].*)?$"

_PLAIN_PATH = regex(r"(\*(?![0-9A-Fa-f]))?[-A-Za-z0-9._~/]*\*?")  # a wildcard may split an escape such as %40
_SHARED_SELECTORS = {
    **{f"context.request.http.{name}": f"request.{name}" for name in ("method", "path", "host")},
    **{f"request.{name}": f"request.{name}" for name in ("method", "path", "host")},
}
"""The selectors of attributes that every request has, and that a gateway's filter and an auth scheme share."""
_SHARED_ATTRIBUTES = frozenset(_SHARED_SELECTORS.values())


def is_plain_path(path: str) -> bool:
    """Return whether a path has only one spelling, so that it can be compared with the path that a proxy sends."""
    return _PLAIN_PATH.fullmatch(path) is not None


def rules_predicate(rules: Sequence[HttpRule], is_any_host: Iterable[bool], *, at_gateway: bool = True) -> str | None:
    """Return a predicate for the requests that ANY of the rules selects; None if they select all.

    `is_any_host`: a rule covers all hosts of its target. `at_gateway` False: the predicate is for an auth scheme, which
    sees the path with its query or decoded.
    """
    parts = [
        _rule(rule, any_host=any_host, at_gateway=at_gateway) for rule, any_host in zip(rules, is_any_host, strict=True)
    ]
    if not parts or None in parts:
        return None
    texts = list(dict.fromkeys(part for part in parts if part is not None))
    return texts[0] if len(texts) == 1 else " || ".join(f"({text})" if " && " in text else text for text in texts)


def _rule(rule: HttpRule, *, any_host: bool, at_gateway: bool) -> str | None:
    parts = []
    if not any_host and rule.hosts is not None and ANY not in rule.hosts:
        parts.append(host_predicate(rule.hosts))
    if rule.methods is not None and "*" not in rule.methods:
        parts.append(_one_of("request.method", rule.methods))
    if rule.paths is not None and "*" not in rule.paths:
        paths = list(_paths(rule.paths)) if at_gateway else [_path_predicate(rule.paths)]
        parts.append(f"({' || '.join(paths)})" if parts and len(paths) > 1 else " || ".join(paths))
    return " && ".join(parts) or None


def host_predicate(hosts: Iterable[str]) -> str:
    """Return a predicate for ANY of some hosts, in any letter case, with or without a port."""
    names = "|".join(host.replace(".", "[.]").replace("*", ".*", 1) for host in hosts)
    return f"request.host.matches({_text(HOST_START + names + HOST_END)})"


def _paths(paths: Sequence[str]) -> Iterator[str]:
    if exact := [path for path in paths if "*" not in path]:
        yield _one_of("request.url_path", exact)
    for path in paths:
        if path.endswith("*"):
            yield f"request.url_path.startsWith({_text(path[:-1])})"
        elif path.startswith("*"):
            yield f"request.url_path.endsWith({_text(path[1:])})"


def _path_predicate(paths: Iterable[str]) -> str:
    """Return a predicate for ANY of some paths, with or without a query."""
    names = "|".join(path.replace(".", "[.]").replace("*", ANY_PATH, 1) for path in paths)
    return f"request.path.matches({_text(PATH_START + names + PATH_END)})"


def _one_of(attribute: str, values: Sequence[str]) -> str:
    if len(values) == 1:
        return f"{attribute} == {_text(values[0])}"
    return f"{attribute} in [{', '.join(map(_text, values))}]"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if re.search(r"['\\\x00-\x1f]", text) else f"'{text}'"


# Conditions of auth schemes


def gateway_predicates(when: Condition | None) -> list[str] | None:
    """Return the conditions of a scheme as predicates for the filter of a gateway; None if the filter lacks an
    attribute.
    """
    if when is None:
        return []
    predicates = [predicate_text(part) for part in (when.parts if isinstance(when, All) else (when,))]
    return None if None in predicates else [predicate for predicate in predicates if predicate is not None]


def predicate_text(condition: Condition) -> str | None:
    """Return a condition as CEL with the same result in the filter of a gateway and in an auth scheme; None if there is
    none.
    """
    match condition:
        case All(parts) | AnyOf(parts):
            texts = [predicate_text(part) for part in parts]
            if not texts or None in texts:
                return None
            if len(texts) == 1:
                return texts[0]
            return (" && " if isinstance(condition, All) else " || ").join(f"({text})" for text in texts)
        case CelPredicate(text):
            return text if reads_shared_only(text) else None
        case Pattern(selector, operator, value) if (attribute := _SHARED_SELECTORS.get(selector)) is not None:
            return _comparison(attribute, operator, _text(value))
        case _:
            return None


def _comparison(attribute: str, operator: PatternOperator, value: str) -> str | None:
    match operator:
        case PatternOperator.EQ:
            return f"{attribute} == {value}"
        case PatternOperator.NEQ:
            return f"{attribute} != {value}"
        case PatternOperator.MATCHES:
            return f"{attribute}.matches({value})"
        case _:
            return None


def reads_shared_only(predicate: str) -> bool:
    """Return whether a predicate reads only attributes that the filter of a gateway and an auth scheme share."""
    compiled = compile_document_cel(predicate)
    return not isinstance(compiled, CelProblem) and all(
        ".".join(path) in _SHARED_ATTRIBUTES for path in compiled.mentions
    )
