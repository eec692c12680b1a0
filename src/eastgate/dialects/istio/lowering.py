"""Rules as predicates, for a proxy with Envoy's RBAC filter.

On connections without HTTP, fields of HTTP do not count. An ALLOW policy drops the whole rule. Other policies drop the
field, so that the rule matches more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.dialects.istio.attributes import (
    LOWERED_AUTHORITY,
    claim_of_key,
    compared_path,
    compared_target,
    header_of_key,
    metadata_of_key,
)
from eastgate.dialects.istio.claims import AUDIENCE, PRESENTER
from eastgate.dialects.istio.matching import (
    match_claims,
    match_identities,
    match_namespaces,
    match_networks,
    match_paths,
    match_pattern,
    match_ports,
    match_request_principals,
    match_service_accounts,
    match_texts,
    match_trust_domains,
)
from eastgate.dialects.istio.mesh_config import MeshConfig, expand_trust_domains, replace_trust_domains
from eastgate.dialects.istio.model import Action, IstioAuthorizationPolicy
from eastgate.dialects.istio.provenance import Surface
from eastgate.dialects.istio.values import is_template
from eastgate.dialects.istio.written import OPERATION_FIELDS, SOURCE_FIELDS, Fields, IstioRule, Values, WrittenValue
from eastgate.ir import Not, Predicate, Rule, all_of, any_of, conjuncts
from eastgate.ir.addresses import comparable_host
from eastgate.ir.attributes import (
    ADDRESS,
    AUTHORITY,
    DESTINATION_ADDRESS,
    FORWARDED_ADDRESS,
    HOST,
    METHOD,
    PATH,
    SNI,
    TARGET,
)
from eastgate.ir.paths import any_path

# Hosts of a rule as Eastgate's proxies compare them: without port, letter case and trailing dot.


_PORT = regex(r"(?P<host>.*):(?P<port>[0-9]+)")


def match_canonical_hosts(texts: Iterable[str]) -> Predicate:
    """Match ANY of these hosts. A host with a port matches only requests that name this port."""
    return any_of(map(_host, texts))


def _host(text: str) -> Predicate:
    port = _PORT.fullmatch(text)
    if text.endswith("*") and ":" in text:  # any port, or any of some
        return match_pattern(f"{AUTHORITY} is {text}", AUTHORITY, rf"(?i){re.escape(text[:-1].lower())}.*")
    if port is None:
        return match_texts(HOST, [_canonical(text)])
    host = port["host"].lower()
    name = f".*{re.escape(host[1:])}" if host.startswith("*") else re.escape(host)
    return match_pattern(f"{AUTHORITY} is {text}", AUTHORITY, rf"(?i){name}\.?:{port['port']}")


def _canonical(text: str) -> str:
    """Return a host in its canonical form. A wildcard at its beginning or end stays."""
    if text.startswith("*"):
        return f"*{comparable_host(text[1:])}"
    return f"{text[:-1].lower()}*" if text.endswith("*") else comparable_host(text)


_HTTP_FIELDS = frozenset({"hosts", "methods", "paths", "requestPrincipals"})
_HTTP_KEYS = ("request.headers", "request.auth.")

Matching = Callable[[Sequence[str]], Predicate]


@dataclass(frozen=True, slots=True)
class View:
    """A proxy's view of traffic, and its mesh."""

    surface: Surface
    mesh: MeshConfig


class _OnlyHttpError(Exception):
    """An ALLOW rule needs HTTP, but the connection has none."""


@lru_cache(maxsize=65_536)
def lower_policy(policy: IstioAuthorizationPolicy, view: View) -> tuple[Rule, ...]:
    """Return the rules of a policy for a proxy with this view, without the rules that the proxy drops."""
    lowered = ((rule, _lower(rule, policy, view)) for rule in policy.rules)
    return tuple(Rule(when, rule.origin) for rule, when in lowered if when is not None)


def _lower(rule: IstioRule, policy: IstioAuthorizationPolicy, view: View) -> Predicate | None:
    lowering = _Lowering(policy.namespace, view, drops_rules=policy.action is Action.ALLOW)
    try:
        parts = (
            lowering.any_entry(rule.sources or (), SOURCE_FIELDS),
            lowering.any_entry(rule.operations or (), OPERATION_FIELDS),
            *(part for when in rule.conditions for part in lowering.field(when.key, when.values)),
        )
        return all_of(asked for part in parts for asked in conjuncts(part))
    except _OnlyHttpError:
        return None


class _Lowering:
    def __init__(self, namespace: str, view: View, *, drops_rules: bool) -> None:
        self.namespace = namespace
        self.view = view
        self.drops_rules = drops_rules

    def any_entry(self, entries: Sequence[Fields], fields: Iterable[str]) -> Predicate:
        """Match ANY of these sources or operations; without entries, everything."""
        if not entries:
            return all_of(())
        order = tuple(fields)
        return any_of(
            all_of(part for name in order if name in entry for part in self.field(name, entry[name]))
            for entry in entries
        )

    def field(self, name: str, values: Values) -> Iterator[Predicate]:
        """Yield the predicates of a list of a rule, or of a condition: ANY of its values, NONE of the negated ones."""
        if self.view.surface is Surface.BYTES and _needs_http(name):
            if self.drops_rules:
                raise _OnlyHttpError
            return
        match = self._matching(name)
        if values.values:
            yield match(_texts(values.values))
        if values.not_values:
            yield Not(match(_texts(values.not_values)))

    def _matching(self, name: str) -> Matching:
        simple = _MATCHING.get(name)
        if simple is not None:
            return simple
        match name:
            case "principals" | "source.principal":
                return lambda texts: match_identities(replace_trust_domains(texts, self.view.mesh.trust_domains))
            case "trustDomains" | "source.trustDomain":
                return lambda texts: match_trust_domains(expand_trust_domains(texts, self.view.mesh.trust_domains))
            case "serviceAccounts" | "source.serviceAccount":
                return lambda texts: match_service_accounts(texts, self.namespace)
            case "hosts":
                return self._hosts
            case "paths":
                return self._paths
            case _:
                return lambda texts: self._condition(name, texts)

    def _hosts(self, texts: Sequence[str]) -> Predicate:
        if self.view.surface is Surface.ANY:
            return match_canonical_hosts(texts)
        return match_texts(LOWERED_AUTHORITY, [text.lower() for text in texts])

    def _paths(self, texts: Sequence[str]) -> Predicate:
        if self.view.surface is not Surface.ANY:
            return match_paths(compared_path(self.view.mesh.path_normalization), texts)
        plain = [text for text in texts if not is_template(text)]
        templates = [text for text in texts if is_template(text)]
        return any_of(
            [*([_canonical_paths(plain)] if plain else []), *([match_paths(PATH, templates)] if templates else [])]
        )

    def _condition(self, key: str, texts: Sequence[str]) -> Predicate:
        header = header_of_key(key)
        if header is TARGET and self.view.surface is not Surface.ANY:
            header = compared_target(self.view.mesh.path_normalization)
        if header is not None:
            return match_texts(header, texts)
        claim = claim_of_key(key)
        if claim is not None:
            return match_claims(claim, texts)
        listed = (text[1:-1] if text.startswith("[") and text.endswith("]") else text for text in texts)
        return match_texts(metadata_of_key(key), listed)


def _needs_http(name: str) -> bool:
    return name in _HTTP_FIELDS or name.startswith(_HTTP_KEYS)


def _texts(values: Iterable[WrittenValue]) -> list[str]:
    return [value.text for value in values]


def _canonical_paths(texts: Sequence[str]) -> Predicate:
    """Match ANY of these paths in canonical form. A path with a `*` that is not at one end matches nothing."""
    anything = match_texts(PATH, ["*"])
    usual = [text for text in texts if text != "*"]
    return any_of([*([any_path(map(_one_wildcard, usual))] if usual else []), *([anything] if "*" in texts else [])])


def _one_wildcard(text: str) -> str:
    """Return a path with its one wildcard. Any other `*` is a character."""
    if text.startswith("*"):
        return f"*{text[1:].replace('*', '%2A')}"
    return f"{text[:-1].replace('*', '%2A')}*" if text.endswith("*") else text.replace("*", "%2A")


_MATCHING: dict[str, Matching] = {
    "requestPrincipals": match_request_principals,
    "request.auth.principal": match_request_principals,
    "namespaces": match_namespaces,
    "source.namespace": match_namespaces,
    "remoteIpBlocks": lambda texts: match_networks(FORWARDED_ADDRESS, texts),
    "remote.ip": lambda texts: match_networks(FORWARDED_ADDRESS, texts),
    "ipBlocks": lambda texts: match_networks(ADDRESS, texts),
    "source.ip": lambda texts: match_networks(ADDRESS, texts),
    "destination.ip": lambda texts: match_networks(DESTINATION_ADDRESS, texts),
    "ports": match_ports,
    "destination.port": match_ports,
    "methods": lambda texts: match_texts(METHOD, texts),
    "connection.sni": lambda texts: match_texts(SNI, texts),
    "request.auth.audiences": lambda texts: match_claims(AUDIENCE, texts),
    "request.auth.presenter": lambda texts: match_claims(PRESENTER, texts),
}
