"""Fields that many entries of a scheme have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.model import (
    All,
    AnyOf,
    Cache,
    Callback,
    CelExpression,
    CelPredicate,
    ClientCredentials,
    Condition,
    HttpCall,
    LiteralValue,
    Metadata,
    MetadataSource,
    MissingPatterns,
    Pattern,
    PatternOperator,
    Property,
    SecretRef,
    Selected,
    UmaResources,
    UserInfo,
    Value,
)
from eastgate.dialects.kuadrant.schemes.credentials import read_credentials
from eastgate.dialects.kuadrant.schemes.styles import entries
from eastgate.reading.manifests.node import Node

# Converts values and conditions of a checked scheme to their model.


@dataclass(frozen=True, slots=True)
class Patterns:
    """The named sets of patterns that conditions refer to."""

    sets: Mapping[str, All] = field(default_factory=dict)
    drop_missing: bool = False
    """Whether a reference to a missing set is left out, as in Authorino. Otherwise it errs."""

    def resolve(self, reference: Node) -> tuple[Condition, ...]:
        """Return the patterns of the set with this name."""
        named = self.sets.get(reference.text)
        if named is not None:
            return named.parts
        return () if self.drop_missing else (MissingPatterns(reference.text, reference.span),)


def texts(node: Node | None) -> tuple[str, ...]:
    """Read the strings of a list."""
    return tuple(item.text for item in node or ())


# Values


def value_of(node: Node) -> Value:
    """Read a value: a literal, a selector or an expression."""
    selected = node["valueFrom"]["authJSON"] if "valueFrom" in node else node.get("selector")
    if selected is not None:
        return Selected(selected.text)
    if "expression" in node:
        return CelExpression(node["expression"].text)
    return LiteralValue(node["value"].plain())


def optional_value(node: Node | None) -> Value | None:
    """Read a value, or None. An empty mapping is no value."""
    return value_of(node) if node is not None and node.value else None


def properties(node: Node | None, *, overwrite: bool = False) -> tuple[Property, ...]:
    """Read named values, in a list or a mapping."""
    return tuple(Property(name, value_of(entry), overwrite or _overwrites(entry)) for name, entry in entries(node))


def _overwrites(entry: Node) -> bool:
    flag = entry.get("overwrite")
    return flag is not None and flag.value is True


# Conditions


def named_patterns(entries: Iterable[tuple[str, Node]], *, drop_missing: bool = False) -> Patterns:
    """Read sets of patterns: a list, or a mapping with the list under `allOf`."""
    sets = {name: All(tuple(_condition(pattern, Patterns()) for pattern in _listed(node))) for name, node in entries}
    return Patterns(sets, drop_missing)


def _listed(patterns: Node) -> Node:
    return patterns["allOf"] if isinstance(patterns.value, dict) else patterns


def all_of(conditions: Node | None, patterns: Patterns) -> All | None:
    """Read a list of conditions that must ALL hold; None if the list is empty."""
    if conditions is None or not list(conditions):
        return None
    return All(tuple(_condition(condition, patterns) for condition in conditions))


def at_gateway(predicates: Node | None) -> All | None:
    """Read the `when` of an AuthPolicy: predicates for the filter of a gateway, which must ALL hold."""
    if predicates is None or not list(predicates):
        return None
    nodes = (condition["predicate"] for condition in predicates)
    return All(tuple(CelPredicate(node.text, node.span, at_gateway=True) for node in nodes))


def _alternatives(node: Node, patterns: Patterns) -> tuple[Condition, ...]:
    """Read a member of `any`. A named set becomes its patterns one by one, as in Authorino."""
    return patterns.resolve(node["patternRef"]) if "patternRef" in node else (_condition(node, patterns),)


def _condition(node: Node, patterns: Patterns) -> Condition:
    if "patternRef" in node:
        return All(patterns.resolve(node["patternRef"]))
    if "predicate" in node:
        return CelPredicate(node["predicate"].text, node["predicate"].span)
    if "all" in node:
        return All(tuple(_condition(member, patterns) for member in node["all"]))
    if "any" in node:
        members = [(member, _alternatives(member, patterns)) for member in node["any"]]
        apart = tuple(member["patternRef"].span for member, parts in members if len(parts) > 1)
        return AnyOf(tuple(part for _, parts in members for part in parts), apart)
    value = node.get("value")
    operator = PatternOperator(node["operator"].text)
    return Pattern(node["selector"].text, operator, value.text if value is not None else "", node.span)


def first_of(node: Node, *names: str) -> Node | None:
    """Return the field under the first of its names that exists."""
    return next((node[name] for name in names if name in node), None)


def text_of(node: Node | None, otherwise: str = "") -> str:
    """Return the text of a node, or the default."""
    return node.text if node is not None else otherwise


def is_set(node: Node | None) -> bool:
    """Return whether a flag is true."""
    return node is not None and node.value is True


def seconds_of(node: Node, name: str, otherwise: int = 0) -> int:
    """Return a number of seconds, or the default."""
    seconds = node.get(name)
    return seconds.number if seconds is not None else otherwise


def timeout_of(node: Node) -> float | None:
    """Return the `timeout` of a request, in seconds, or None."""
    milliseconds = node.get("timeout")
    return milliseconds.number / 1000 if milliseconds is not None else None


def priority_of(entry: Node) -> int:
    """Return the priority of an entry."""
    priority = entry.get("priority")
    return priority.number if priority is not None else 0


def cache_of(entry: Node) -> Cache | None:
    """Return how long answers of an entry may be cached."""
    cache = entry.get("cache")
    if cache is None:
        return None
    key, ttl = value_of(cache["key"]), cache.get("ttl")
    return Cache(key, ttl.number) if ttl is not None else Cache(key)


# Converts metadata sources and callbacks to their model.


def read_metadata(name: str, entry: Node, patterns: Patterns) -> Metadata:
    """Read a source of metadata."""
    when = all_of(entry.get("when"), patterns)
    return Metadata(name, _source(entry), priority_of(entry), when, cache_of(entry), entry.span)


def _source(entry: Node) -> MetadataSource:
    if "userInfo" in entry:
        node = entry["userInfo"]
        return UserInfo(text_of(node.get("identitySource")), text_of(node.get("userInfoUrl")), timeout_of(node))
    if "uma" in entry:
        node = entry["uma"]
        return UmaResources(node["endpoint"].text, node["credentialsRef"]["name"].text, timeout_of(node))
    return read_http(entry["http"])


def read_callback(name: str, entry: Node, patterns: Patterns) -> Callback:
    """Read a callback."""
    when = all_of(entry.get("when"), patterns)
    return Callback(name, read_http(entry["http"]), priority_of(entry), when, entry.span)


def read_secret(node: Node | None) -> SecretRef | None:
    """Read a reference to a value in a Secret, or None."""
    return SecretRef(node["name"].text, node["key"].text) if node is not None else None


def _client(node: Node | None) -> ClientCredentials | None:
    if node is None:
        return None
    cache, parameters = node.get("cache"), node.get("extraParams")
    secret = node["clientSecretRef"]
    return ClientCredentials(
        node["tokenUrl"].text,
        node["clientId"].text,
        SecretRef(secret["name"].text, secret["key"].text),
        texts(node.get("scopes")),
        tuple((name, value.text) for name, value in (parameters.items() if parameters is not None else ())),
        cache is None or cache.value is True,
        timeout_of(node),
    )


def read_http(node: Node) -> HttpCall:
    """Read an HTTP request."""
    expression = node.get("urlExpression")
    return HttpCall(
        url=text_of(first_of(node, "endpoint", "url")),
        method=text_of(node.get("method"), "GET"),
        headers=properties(node.get("headers")),
        body=optional_value(node.get("body")),
        body_parameters=properties(node.get("bodyParameters")),
        content_type=text_of(node.get("contentType"), "application/x-www-form-urlencoded"),
        shared_secret=read_secret(node.get("sharedSecretRef")),
        credentials=read_credentials(node.get("credentials")),
        url_expression=CelExpression(expression.text) if expression is not None else None,
        client=_client(node.get("oauth2")),
        timeout=timeout_of(node),
    )
