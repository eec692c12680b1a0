"""The strings of a rule as predicates, equal to the matchers that istiod configures in Envoy.

`*` alone matches any value. Otherwise a leading `*` is a wildcard, or else a `*` at the end. Any other `*` is a
character, except in namespaces: there each `*` matches any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from eastgate.basics.regexes import regex
from eastgate.dialects.istio.claims import ISSUER, SUBJECT
from eastgate.dialects.istio.values import MATCH_ANY, MATCH_ONE, is_template, network_of, port_of
from eastgate.ir import Computed, InNetwork, Is, Known, OneOf, Predicate, Prefix, Present, Suffix, all_of, any_of
from eastgate.ir.attributes import IDENTITY, PORT, Attribute
from eastgate.ir.spiffe import SCHEME

_ONE_SEGMENT = r"[a-zA-Z0-9._~%!$&'()+,;:@=*-]+"
_ANY_SEGMENTS = r"[a-zA-Z0-9._~%!$&'()+,;:@=*/-]*"


def match_texts(attribute: Attribute, texts: Iterable[str]) -> Predicate:
    """Match ANY of these texts. `*` alone matches any value."""
    return _match(attribute, texts, lambda: Is(attribute, Present()))


def match_claims(attribute: Attribute, texts: Iterable[str]) -> Predicate:
    """Match ANY of these texts with a claim. `*` alone matches any value that is not empty."""
    return _match(attribute, texts, lambda: _not_empty(attribute))


def _match(attribute: Attribute, texts: Iterable[str], anything: Callable[[], Predicate]) -> Predicate:
    exact: set[str] = set()
    parts: list[Predicate] = []
    for text in texts:
        if text == "*":
            parts.append(anything())
        elif text.startswith("*"):
            parts.append(Is(attribute, Suffix(text[1:])))
        elif text.endswith("*"):
            parts.append(Is(attribute, Prefix(text[:-1])))
        else:
            exact.add(text)
    return any_of([*([Is(attribute, OneOf(frozenset(exact)))] if exact else []), *parts])


def match_pattern(text: str, attribute: Attribute, pattern: str) -> Computed:
    """Match a regular expression with the whole attribute. `text` is the name of the test."""
    compiled = _compiled(pattern)

    def holds(values: Mapping[Attribute, Known]) -> bool:
        value = values.get(attribute)
        return isinstance(value, str) and compiled.fullmatch(value) is not None

    return Computed(text, frozenset({attribute}), holds, pattern=(attribute, pattern))


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    return regex(pattern)


def _not_empty(attribute: Attribute) -> Predicate:
    return match_pattern(f"{attribute} is not empty", attribute, ".+")


# Identities


def match_identities(principals: Iterable[str]) -> Predicate:
    """Match ANY of these principals, which are identities without their scheme."""
    exact: set[str] = set()
    parts: list[Predicate] = []
    for text in principals:
        if text == "*":
            parts.append(Is(IDENTITY, Present()))
        elif text.startswith("*"):
            # The part after the scheme must have this suffix: a plain suffix could overlap the scheme.
            pattern = f"{SCHEME}.*{re.escape(text[1:])}"
            parts.append(match_pattern(f"identity is {SCHEME}{text}", IDENTITY, pattern))
        elif text.endswith("*"):
            parts.append(Is(IDENTITY, Prefix(f"{SCHEME}{text[:-1]}")))
        else:
            exact.add(f"{SCHEME}{text}")
    return any_of([*([Is(IDENTITY, OneOf(frozenset(exact)))] if exact else []), *parts])


def match_namespaces(namespaces: Iterable[str]) -> Predicate:
    """Match ANY of these namespaces of callers. Each `*` in them matches any text."""
    return any_of(
        match_pattern(
            f"from namespace {text}",
            IDENTITY,
            f".*/ns/{'.*'.join(re.escape(part) for part in text.split('*'))}/.*",
        )
        for text in namespaces
    )


def match_service_accounts(accounts: Iterable[str], policy_namespace: str) -> Predicate:
    """Match ANY of these service accounts, in any trust domain. A name without a namespace is in the policy's."""
    return any_of(_service_account(text, policy_namespace) for text in accounts)


def _service_account(text: str, policy_namespace: str) -> Predicate:
    namespace, slash, name = text.partition("/")
    if not slash:
        namespace, name = policy_namespace, text
    pattern = f"{SCHEME}.+/ns/{re.escape(namespace)}/(.+/|)sa/{re.escape(name)}(/.+)?"
    return match_pattern(f"service account of the identity is {namespace}/{name}", IDENTITY, pattern)


def match_trust_domains(domains: Iterable[str]) -> Predicate:
    """Match ANY of these trust domains of callers."""
    return any_of(map(_trust_domain, domains))


def _trust_domain(text: str) -> Predicate:
    if text == "*":
        return Is(IDENTITY, Prefix(SCHEME))
    if "*" not in text:
        return Is(IDENTITY, Prefix(f"{SCHEME}{text}/"))
    before, _, after = text.partition("*")
    pattern = f"{SCHEME}{re.escape(before)}[^/]*{re.escape(after)}/.*"
    return match_pattern(f"trust domain of the identity is {text}", IDENTITY, pattern)


def match_request_principals(principals: Iterable[str]) -> Predicate:
    """Match ANY of these principals of tokens: the issuer, the last slash, and the subject."""
    return any_of(_request_principal(text) for text in principals)


def _request_principal(text: str) -> Predicate:
    issuer, slash, subject = text.rpartition("/")
    if not slash:
        issuer, subject = _without_slash(text)
        return all_of((match_claims(ISSUER, [issuer]), match_claims(SUBJECT, [subject])))
    if text.startswith("*"):  # a `*` at the end of the subject is a character
        return all_of((match_claims(ISSUER, [issuer]), Is(SUBJECT, OneOf(frozenset({subject})))))
    if text.endswith("*"):
        anybody = _not_empty(SUBJECT) if subject == "*" else Is(SUBJECT, Prefix(subject[:-1]))
        return all_of((Is(ISSUER, OneOf(frozenset({issuer}))), anybody))
    return all_of((Is(ISSUER, OneOf(frozenset({issuer}))), Is(SUBJECT, OneOf(frozenset({subject})))))


def _without_slash(text: str) -> tuple[str, str]:
    """Return issuer and subject of a principal without a slash. A suffix is a subject; other texts are issuers."""
    if text == "*":
        return "*", "*"
    if text.startswith("*"):
        return "*", text
    return (text, "*") if text.endswith("*") else (text, "")


# Networks, ports and paths


def match_networks(attribute: Attribute, networks: Iterable[str]) -> Predicate:
    """Match ANY of these addresses and networks."""
    return Is(attribute, InNetwork(tuple(dict.fromkeys(map(network_of, networks)))))


def match_ports(ports: Iterable[str]) -> Predicate:
    """Match ANY of these ports."""
    return Is(PORT, OneOf(frozenset(map(port_of, ports))))


def match_paths(attribute: Attribute, paths: Sequence[str]) -> Predicate:
    """Match ANY of these paths. A path may be a template."""
    plain = [path for path in paths if not is_template(path)]
    templates = [match_template(attribute, path) for path in paths if is_template(path)]
    return any_of([*([match_texts(attribute, plain)] if plain else []), *templates])


def match_template(attribute: Attribute, template: str) -> Predicate:
    """Match a path template: `{*}` matches one segment, `{**}` any number of them."""
    operators = {MATCH_ONE: _ONE_SEGMENT, MATCH_ANY: _ANY_SEGMENTS}
    segments = (operators.get(segment) or re.escape(segment) for segment in template[1:].split("/"))
    return match_pattern(f"{attribute} matches {template}", attribute, f"/{'/'.join(segments)}")
