"""An independent implementation of Istio's authorization at sidecars, as in istiod and Envoy, on plain manifests.

It shares no code with the product, and has istiod's structure: the policies of a pod, then a pair of lists (permissions
and principals) for each rule, then the filters of a proxy. The filters are mTLS, CUSTOM, the token, DENY and ALLOW. All
attributes of a call are known.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

Manifest = dict[str, Any]
CLOSED, OK, BAD_TOKEN, FORBIDDEN = 0, 200, 401, 403


@dataclass(frozen=True)
class Call:
    """One request, or one connection without HTTP (then without a method)."""

    identity: str | None  # spiffe://...; None for plaintext
    address: str
    port: int
    forwarded_for: str
    sni: str
    method: str | None = None
    path: str = "/"
    host: str = "h"
    headers: tuple[tuple[str, str], ...] = ()
    claims: Manifest | None = None

    @property
    def is_http(self) -> bool:
        return self.method is not None


Test = Callable[[Call], bool]


class HttpOnlyError(Exception):
    """A field that a connection without HTTP does not have."""


@dataclass(frozen=True)
class MeshConfig:
    """The configuration of istiod."""

    root: str = "istio-system"
    trust_domains: tuple[str, ...] = ("cluster.local",)  # the mesh's own, then its aliases
    normalization: str = "base"
    providers: tuple[tuple[str, bool, str], ...] = ()  # name, by gRPC, its answer: allow, deny or error


class Sidecars:
    """A mesh in which every pod has a sidecar."""

    def __init__(self, manifests: list[Manifest], config: MeshConfig) -> None:
        self.manifests, self.config = manifests, config

    def status(self, pod: Manifest, call: Call) -> int:
        """Return 200, 401, 403, or 0 for a closed connection."""
        mode = mutual_tls(self.of("PeerAuthentication"), pod, self.config.root, call.port)
        if mode == "STRICT" and call.identity is None:
            return CLOSED
        if mode == "DISABLE":
            call = replace(call, identity=None, sni="")
        attached = [p for p in self.of("AuthorizationPolicy") if self._attaches(p, pod)]
        rules = [p for p in self.of("RequestAuthentication") if self._attaches(p, pod)]
        return self.chain(attached, rules, call)

    def chain(self, policies: list[Manifest], tokens: list[Manifest], call: Call) -> int:
        """Run the filters of one proxy: CUSTOM, the token, DENY, ALLOW."""
        denied = FORBIDDEN if call.is_http else CLOSED
        call = replace(call, path=normalize(call.path.partition("?")[0], self.config.normalization))
        in_force = [p for p in policies if not is_dry_run(p)]
        if self._extension_denies([p for p in in_force if action_of(p) == "CUSTOM"], call):
            return denied
        if call.is_http:
            refused, call = _authenticate(tokens, call)
            if refused:
                return refused
        elif call.claims is not None:
            call = replace(call, claims=None)
        if any(self.matches(p, call, "DENY") for p in in_force if action_of(p) == "DENY"):
            return denied
        allowing = [p for p in in_force if action_of(p) == "ALLOW"]
        return OK if not allowing or any(self.matches(p, call, "ALLOW") for p in allowing) else denied

    def of(self, kind: str) -> list[Manifest]:
        """Return the manifests of a kind of Istio's API."""
        group = "security.istio.io"
        return [m for m in self.manifests if m["kind"] == kind and m["apiVersion"].startswith(group)]

    def matches(self, policy: Manifest, call: Call, action: str) -> bool:
        """Return whether ANY rule matches."""
        return any(self._rule_matches(rule, policy, call, action) for rule in spec_of(policy).get("rules") or [])

    def _attaches(self, policy: Manifest, pod: Manifest) -> bool:
        namespace, spec = policy["metadata"]["namespace"], spec_of(policy)
        if namespace not in (self.config.root, pod["metadata"]["namespace"]):
            return False
        has_target = bool(spec.get("targetRefs") or spec.get("targetRef"))
        return not has_target and selects(spec.get("selector"), pod)

    def _extension_denies(self, policies: list[Manifest], call: Call) -> bool:
        providers = {spec_of(p)["provider"]["name"] for p in policies}
        matching = [p for p in policies if self.matches(p, call, "CUSTOM")]
        known = {name: (by_grpc, answer) for name, by_grpc, answer in self.config.providers}
        if len(providers) > 1 or not providers <= known.keys():
            return bool(matching)
        answers = [known[name] for name in providers]
        asked = [answer for by_grpc, answer in answers if by_grpc or call.is_http]
        return bool(matching) and any(answer != "allow" for answer in asked)

    def _rule_matches(self, rule: Manifest, policy: Manifest, call: Call, action: str) -> bool:
        """Match ANY permission AND ANY principal. Without HTTP, an ALLOW rule with an HTTP field is dropped.

        From a rule with another action, only the field is dropped.
        """
        maker = _Matchers(policy["metadata"]["namespace"], self.config, call.is_http, lenient=action != "ALLOW")
        try:
            permissions = list(maker.permissions(rule))
            principals = list(maker.principals(rule))
        except HttpOnlyError:
            return False
        return any(all(t(call) for t in p) for p in permissions) and any(all(t(call) for t in p) for p in principals)


@dataclass(frozen=True)
class _Matchers:
    """A converter of rules to tests, like istiod's conversion to RBAC configuration."""

    namespace: str
    config: MeshConfig
    is_http: bool
    lenient: bool

    def permissions(self, rule: Manifest) -> Iterator[list[Test]]:
        conditions = [w for w in rule.get("when") or [] if w["key"].startswith(("destination.", "connection."))]
        base = [test for when in conditions for test in self._condition(when)]
        for to in rule.get("to") or [{"operation": {}}]:
            yield [test for name in OPERATION_FIELDS for test in self._field(name, to["operation"])] + base

    def principals(self, rule: Manifest) -> Iterator[list[Test]]:
        conditions = [w for w in rule.get("when") or [] if not w["key"].startswith(("destination.", "connection."))]
        base = [test for when in conditions for test in self._condition(when)]
        for source in rule.get("from") or [{"source": {}}]:
            yield [test for name in SOURCE_FIELDS for test in self._field(name, source["source"])] + base

    def _field(self, name: str, fields: Manifest) -> list[Test]:
        negated = "not" + name[0].upper() + name[1:]
        return self._tests(name, fields.get(name) or [], fields.get(negated) or [])

    def _condition(self, when: Manifest) -> list[Test]:
        return self._tests(when["key"], when.get("values") or [], when.get("notValues") or [])

    def _tests(self, attribute: str, values: list[str], negated: list[str]) -> list[Test]:
        """Return tests for ANY of the values, AND NOT ANY of the negated ones."""
        made: list[Test] = []
        for wanted, unwanted in ((values, False), (negated, True)):
            tests = self._values(attribute, wanted)
            if tests:
                made.append(lambda call, tests=tests, unwanted=unwanted: unwanted != any(t(call) for t in tests))  # type: ignore[misc]
        return made

    def _values(self, attribute: str, values: list[str]) -> list[Test]:
        try:
            return [self._value(attribute, value) for value in self._migrated(attribute, values)]
        except HttpOnlyError:
            if self.lenient:
                return []
            raise

    def _migrated(self, attribute: str, values: list[str]) -> list[str]:
        bundle = self.config.trust_domains
        if attribute in ("principals", "source.principal"):
            return [made for value in values for made in _with_aliases(value, bundle)]
        if attribute in ("trustDomains", "source.trustDomain"):
            return [made for value in values for made in (bundle if value in bundle else (value,))]
        return values

    def _value(self, attribute: str, value: str) -> Test:
        if not self.is_http and attribute.startswith(HTTP_ONLY):
            raise HttpOnlyError(attribute)
        return self._connection_value(attribute, value) or _request_value(attribute, value)

    def _connection_value(self, attribute: str, value: str) -> Test | None:
        match attribute:
            case "principals" | "source.principal":
                return lambda call: call.identity is not None and _principal(value, call.identity)
            case "namespaces" | "source.namespace":
                pattern = ".*/ns/" + ".*".join(map(re.escape, value.split("*"))) + "/.*"
                return lambda call: re.fullmatch(pattern, call.identity or "") is not None
            case "serviceAccounts" | "source.serviceAccount":
                namespace, _, name = value.rpartition("/")
                account = rf"spiffe://.+/ns/{re.escape(namespace or self.namespace)}/(.+/|)sa/{re.escape(name)}(/.+)?"
                return lambda call: re.fullmatch(account, call.identity or "") is not None
            case "trustDomains" | "source.trustDomain":
                return lambda call: _trust_domain(value, call.identity)
            case "ipBlocks" | "source.ip":
                return lambda call: inside(value, call.address)
            case "remoteIpBlocks" | "remote.ip":
                return lambda call: inside(value, call.forwarded_for)
            case "ports" | "destination.port":
                return lambda call: call.port == int(value)
            case "connection.sni":
                return lambda call: matches_string(value, call.sni)
        return None


def _request_value(attribute: str, value: str) -> Test:
    match attribute:
        case "hosts":
            return lambda call: matches_string(value.lower(), call.host.lower())
        case "methods":
            return lambda call: matches_string(value, call.method or "")
        case "paths":
            return lambda call: _path(value, call.path)
        case "requestPrincipals" | "request.auth.principal":
            return lambda call: _request_principal(value, call.claims)
    name = attribute.partition("[")[2].removesuffix("]")
    header = name.lower()
    if attribute.startswith("request.headers["):
        return lambda call: any(key.lower() == header and matches_string(value, each) for key, each in call.headers)
    claim = {"request.auth.audiences": "aud", "request.auth.presenter": "azp"}.get(attribute, name)
    return lambda call: _claim(value, (call.claims or {}).get(claim), claim)


OPERATION_FIELDS = ("hosts", "methods", "paths", "ports")
SOURCE_FIELDS = (
    "principals",
    "requestPrincipals",
    "serviceAccounts",
    "trustDomains",
    "namespaces",
    "remoteIpBlocks",
    "ipBlocks",
)
HTTP_ONLY = ("hosts", "methods", "paths", "requestPrincipals", "request.")


# Strings


def matches_string(pattern: str, value: str) -> bool:
    if pattern == "*":
        return value != ""
    if pattern.startswith("*"):
        return value.endswith(pattern[1:])
    if pattern.endswith("*"):
        return value.startswith(pattern[:-1])
    return value == pattern


def _principal(pattern: str, identity: str) -> bool:
    return identity.startswith("spiffe://") and matches_string(pattern, identity.removeprefix("spiffe://"))


def _trust_domain(pattern: str, identity: str | None) -> bool:
    if identity is None or "*" not in pattern:
        return (identity or "").startswith(f"spiffe://{pattern}/")
    return matches_string(pattern, identity.removeprefix("spiffe://").partition("/")[0])


def _path(pattern: str, path: str) -> bool:
    if "{*}" not in pattern and "{**}" not in pattern:
        return matches_string(pattern, path)
    literal = re.escape(pattern).replace(r"\{\*\*\}", "[^*{}]*").replace(r"\{\*\}", "[^*{}/]+")
    return re.fullmatch(literal, path) is not None


def _request_principal(pattern: str, claims: Manifest | None) -> bool:
    issuer, subject = (claims or {}).get("iss"), (claims or {}).get("sub")
    if not isinstance(issuer, str) or not isinstance(subject, str):
        return False
    wanted_issuer, slash, wanted_subject = pattern.rpartition("/")
    if slash:
        if pattern.startswith("*"):
            return matches_string(wanted_issuer, issuer) and subject == wanted_subject
        is_prefix = wanted_subject.endswith("*")
        return issuer == wanted_issuer and (
            matches_string(wanted_subject, subject) if is_prefix else subject == wanted_subject
        )
    if pattern.startswith("*"):
        return issuer != "" and matches_string(pattern, subject)
    if pattern.endswith("*"):
        return matches_string(pattern, issuer) and subject != ""
    return issuer == pattern and subject == ""


def _claim(pattern: str, value: object, name: str) -> bool:
    if isinstance(value, str) and name in ("scope", "permission") and " " in value:
        value = value.split(" ")
    if isinstance(value, list):
        return any(isinstance(each, str) and matches_string(pattern, each) for each in value)
    return isinstance(value, str) and matches_string(pattern, value)


def inside(block: str, address: str) -> bool:
    return ipaddress.ip_address(address) in ipaddress.ip_network(block, strict=False)


def _with_aliases(principal: str, bundle: tuple[str, ...]) -> list[str]:
    """Return a principal in every trust domain of the mesh, if it is in one of them or in `cluster.local`."""
    segments = principal.split("/")
    domain = segments[0]
    if len(segments) != 5 or domain == "*":
        return [principal]

    def fits(each: str) -> bool:
        return each == domain or (domain.startswith("*") and each.endswith(domain[1:]))

    if domain != "cluster.local" and not any(map(fits, bundle)):
        return [principal]
    return [principal if fits(each) else "/".join([each, *segments[1:]]) for each in bundle]


def normalize(path: str, mode: str) -> str:
    """Normalize a path as Envoy does with Istio's options."""
    if mode == "none":
        return path
    if mode == "decode-and-merge-slashes":
        path = re.sub("%2[fF]", "/", path)
        path = re.sub("%5[cC]", "\\\\", path)
    path = re.sub("%([0-9A-Fa-f]{2})", _decoded, path).replace("\\", "/")
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    path = "/" + "/".join(kept)
    return path if mode == "base" else re.sub("/+", "/", path)


def _decoded(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if re.fullmatch("[A-Za-z0-9._~-]", character) else found[0]


# Tokens


def _authenticate(tokens: list[Manifest], call: Call) -> tuple[int, Call]:
    rules = [rule for policy in tokens for rule in spec_of(policy).get("jwtRules") or []]
    if call.claims is None or not rules:
        return 0, replace(call, claims=None)
    accepting = [rule for rule in rules if rule.get("issuer") in (None, call.claims.get("iss"))]
    if not accepting:
        return BAD_TOKEN, call
    audience = call.claims.get("aud", [])
    held = {audience} if isinstance(audience, str) else set(audience)
    if any(not rule.get("audiences") or held & set(rule["audiences"]) for rule in accepting):
        return 0, call
    return FORBIDDEN, call


# mTLS


def mutual_tls(policies: list[Manifest], pod: Manifest, root: str, port: int) -> str:
    """Return the mode at a port: the one of the port, or else of the workload, the namespace or the mesh."""
    mesh, namespace, workload = (level[0] for level in peer_levels(policies, pod, root))
    mode = "PERMISSIVE"
    for level in (mesh, namespace, workload):
        mode = set_mode(level) or mode
    ports = spec_of(workload).get("portLevelMtls", {}) if workload else {}
    written = ports.get(str(port), {}).get("mode", "UNSET")
    return mode if written == "UNSET" else str(written)


def set_mode(policy: Manifest | None) -> str | None:
    """Return the mode that a policy sets, or None if it inherits the mode."""
    mode = (spec_of(policy).get("mtls") or {}).get("mode", "UNSET") if policy else "UNSET"
    return None if mode == "UNSET" else str(mode)


def peer_levels(policies: list[Manifest], pod: Manifest, root: str) -> list[list[Manifest | None]]:
    """Return the oldest policies of the mesh, the namespace and the workload, by name.

    A level may have several of one age. A level without a policy has None.
    """
    namespace = pod["metadata"]["namespace"]
    levels: list[list[Manifest]] = [[], [], []]
    for policy in policies:
        selector = (spec_of(policy).get("selector") or {}).get("matchLabels")
        home = policy["metadata"]["namespace"]
        if not selector and home == root:
            levels[0].append(policy)
        elif not selector and home == namespace:
            levels[1].append(policy)
        elif selector and home == namespace != root and selects(spec_of(policy)["selector"], pod):
            levels[2].append(policy)
    return [_oldest(level) for level in levels]


def _oldest(level: list[Manifest]) -> list[Manifest | None]:
    age = min(map(_age, level), default=None)
    oldest = sorted((policy for policy in level if _age(policy) == age), key=lambda policy: policy["metadata"]["name"])
    return [*oldest] or [None]


def _age(policy: Manifest) -> str:
    return str(policy["metadata"].get("creationTimestamp", ""))


# Policies and pods


def selects(selector: Manifest | None, pod: Manifest) -> bool:
    labels = (selector or {}).get("matchLabels") or {}
    return bool(labels.items() <= pod["metadata"]["labels"].items())


def is_dry_run(policy: Manifest) -> bool:
    written = policy["metadata"].get("annotations", {}).get("istio.io/dry-run")
    return written in ("1", "t", "T", "TRUE", "true", "True")


def spec_of(policy: Manifest) -> Manifest:
    return policy.get("spec") or {}


def action_of(policy: Manifest) -> str:
    return str(spec_of(policy).get("action", "ALLOW"))
