"""Finds the decider of a verdict from the name that a proxy gave it: a rule and its line, or a reason in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

from eastgate.authority.auditing import Audited
from eastgate.authority.authority import Authority, programs_of
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import dataclass
from eastgate.cluster import ends
from eastgate.cluster.points import Direction, Point
from eastgate.control.access_log import AUTHORIZER, NO_ANSWER, UNREACHABLE, Observation, WouldBe, would_be
from eastgate.control.destinations import Destinations, dead_end_of
from eastgate.engine.compiled import Program
from eastgate.envoy.plan.decisions import end_of, isolated_by, name_of, policy_name, ref_of
from eastgate.envoy.plan.fields import UNCLEAR
from eastgate.envoy.plan.gateway import NO_SESSION, NO_SUCH_SESSION, UNREAD_MESSAGE, GatewayDestination
from eastgate.ir import REFUSED_HOST, REFUSED_SPELLING, Origin, Unroutable, in_force, rules_of
from eastgate.ir.symbolic.names import MeshNames
from eastgate.settings import Settings

_HANDSHAKES = (
    ("no_trust_bundle", "its certificate is from a trust domain that the mesh does not trust"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate could not be verified: another CA signed it, or it expired"),
    ("PEER_DID_NOT_RETURN_A_CERTIFICATE", "the caller sent no certificate"),
    ("NO_CERTIFICATE_SET", "the proxy has no certificate yet"),
    ("ALERT_UNKNOWN_CA", "the caller does not trust the CA of the mesh"),
    ("ALERT_CERTIFICATE", "the caller did not accept the certificate of the workload"),
    ("ALERT_BAD_CERTIFICATE", "the caller did not accept the certificate of the workload"),
    ("HTTP_REQUEST", "the caller sent plain HTTP where TLS is expected"),
    ("WRONG_VERSION_NUMBER", "the caller sent something else where TLS is expected"),
    ("UNSUPPORTED_PROTOCOL", "the caller offers only versions of TLS that are too old"),
    ("NO_SHARED_CIPHER", "caller and proxy have no cipher in common"),
    ("NO_SHARED_GROUP", "caller and proxy have no key exchange in common"),
)
_REASONS: dict[str, str] = {
    "open": "nothing is in the way",
    UNREACHABLE: "it was allowed, but the application cannot be reached",
    "encoded-slash": "the path has an encoded slash, backslash or NUL",
    "unfit-certificate": (
        "its certificate is not for clients (extended key usage), or too weak (SHA-1, a short RSA key)"
    ),
    "refused-tunnel": "the caller may not ask for this tunnel, or not state another caller",
    "not-through-the-waypoint": "it came past the waypoint of the workload",
    UNCLEAR: "a header or query parameter that policies read has too many values",
    REFUSED_HOST: "the host is not a valid host with a port up to 65535",
    REFUSED_SPELLING: "the path is not in its canonical spelling, and an expression or a pattern reads it",
    UNREAD_MESSAGE: "the MCP message cannot be read for certain, and policies depend on it",
    NO_SESSION: "the request for the stream of a session names no session",
    NO_SUCH_SESSION: "this caller has no such session at this backend",
    "unclear-route": "a part of the request that routes read cannot be read for certain",
    "unknown-destination": "the routes changed during the request",
    AUTHORIZER: "the authorizer, which named no rule",
    NO_ANSWER: "the authorizer did not answer",
    "cannot-be-enforced": "closed: a policy here cannot be enforced",
}
_NO_RULE = "none-of-"
_DEAD_ENDS = {
    Unroutable.NO_ROUTE: "no route takes it",
    Unroutable.NO_BACKEND: "its route has no backend",
    Unroutable.REFERENCE_NOT_GRANTED: "its route may not refer to that backend: no ReferenceGrant allows it",
    Unroutable.BACKEND_NOT_DECLARED: "no manifest declares the backend of its route",
}


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """The rule that decided; without a policy, `text` is the reason. `position` is file:line, if known."""

    text: str
    policy: str | None = None
    rule: int | None = None
    file: str | None = None
    line: int | None = None

    @property
    def position(self) -> str:
        """Return file:line; empty if it is unknown."""
        return f"{self.file}:{self.line}" if self.file is not None else ""


class Deciders:
    """Finds the rules of an authority by the names that proxies have for them."""

    def __init__(self) -> None:
        self._rules: WeakKeyDictionary[Program, dict[str, Origin]] = WeakKeyDictionary()
        self._destinations = Destinations()

    def decider_of(self, observation: Observation, authority: Authority) -> DecidedBy:
        """Return the decider. If the rule was removed since, only its name is known."""
        destination = self._destinations.find(observation, authority)
        dead_end = dead_end_of(destination)
        if dead_end is not None and observation.who.startswith(_NO_RULE):
            return DecidedBy(_DEAD_ENDS.get(dead_end.why, str(dead_end)))
        if destination is not None and observation.who == "proxy/direct_response":
            return DecidedBy(_describe_closed(destination))
        points = self._destinations.points(observation, authority)
        return self.find(points, observation.who, authority, observation.detail)

    def audited(self, observation: Observation, authority: Authority) -> list[Audited]:
        """Return the decisions that audited policies would have made, each with its file and line if they exist."""
        points = self._destinations.points(observation, authority) if observation.audit else ()
        return [
            self._audited(points, policy, would, authority)
            for would in would_be(observation)
            for policy in would.policies or (None,)
        ]

    def _audited(self, points: Sequence[Point], policy: str | None, would: WouldBe, authority: Authority) -> Audited:
        names = [f"{policy}#{would.rule}"] if would.rule is not None else []
        found = (self._rules_at(point, authority).get(name) for name in (*names, policy or "") for point in points)
        origin = next((each for each in found if each is not None), None)
        ref = origin.policy if origin is not None else ref_of(policy) if policy is not None else None
        reason = "no rule allows it" if would.rule is None else f"rule {would.rule}"
        span = origin.span if origin is not None else _span_on_network(policy, authority)
        return Audited(ref, would.verdict, would.rule, span, reason, would.changes)

    def find(self, points: Sequence[Point], who: str, authority: Authority, detail: str | None = None) -> DecidedBy:
        """Return the decider in the name of a verdict: a rule at one of these points, or a reason."""
        if (isolated := isolated_by(who)) is not None:
            return _describe_isolation(*isolated, authority)
        direction, rule = end_of(who)
        if direction is not None:
            origin = _origin_at_end(Direction(direction), rule, authority)
        else:
            known = (self._rules_at(point, authority) for point in reversed(points))
            origin = next((rules[rule] for rules in known if rule in rules), None)
        if origin is not None:
            span = origin.span
            return DecidedBy(
                str(origin),
                str(origin.policy) if origin.policy else None,
                origin.index if origin.policy else None,
                span.file if span else None,
                span.line if span else None,
            )
        policy, separator, index = rule.rpartition("#")
        if separator and index.isdigit():
            kind, _, rest = policy.partition("/")
            policy = f"{kind.partition('.')[0]}/{rest}"
            return DecidedBy(f"{policy} rule {index}", policy, int(index))
        return DecidedBy(_describe_decider(who, detail))

    def _rules_at(self, point: Point, authority: Authority) -> dict[str, Origin]:
        program = programs_of(authority).program(point)
        rules = self._rules.get(program)
        if rules is None:
            audits = (layer.audit for layer in program.layers if layer.audit is not None)
            policies = ((each.policy, each) for audit in audits for each in audit.policies)
            rules = {policy_name(ref): origin for ref, origin in policies if ref is not None}
            rules |= {name_of(origin, 0): origin for origin in _origins(program)}
            self._rules[program] = rules
        return rules


def _origins(program: Program) -> Iterator[Origin]:
    for layer in (*in_force(program.layers), *program.layers):
        for chain in layer.chains:
            for stage in chain.stages:
                yield from (rule.origin for rule in rules_of(stage))


def _span_on_network(name: str | None, authority: Authority) -> Span | None:
    """Return the span of the network policy with this name, or None."""
    policies = programs_of(authority).network_policies
    return next((policy.span for policy in policies if policy_name(policy.ref) == name), None)


def _origin_at_end(direction: Direction, name: str, authority: Authority) -> Origin | None:
    """Return the rule of a network policy with this name, in one direction, or None if it no longer exists."""
    engine = programs_of(authority)
    policies = (policy for policy in engine.network_policies if name.startswith(policy_name(policy.ref)))
    layers = (layer for policy in policies for layer in engine.layers_of(policy, direction))
    rules = (rule for layer in layers for chain in layer.chains for rule in chain.rules(observed=True))
    return next((rule.origin for rule in rules if name_of(rule.origin, 0) == name), None)


def _describe_isolation(direction: str, number: int, name: str, authority: Authority) -> DecidedBy:
    """Describe a refusal by network policies without a matching rule, by the first of these policies."""
    policy = next((policy for policy in authority.policies if policy_name(policy.ref) == name), None)
    written = str(policy.ref) if policy is not None else name
    others = f" and {number - 1} more" if number > 1 else ""
    span = policy.span if policy is not None else None
    return DecidedBy(
        f"no {direction} rule of {written}{others} allows it",
        written,
        None,
        span.file if span is not None else None,
        span.line if span is not None else None,
    )


def _describe_closed(destination: GatewayDestination) -> str:
    """Describe why a gateway answered in place of a server."""
    if destination.unsupported:
        return f"the route is closed: the gateway cannot do all that it says ({', '.join(destination.unsupported)})"
    return "no server is behind the route"


def _describe_decider(who: str, detail: str | None) -> str:
    if who == "handshake":
        return f"TLS handshake: {describe_handshake(detail)}"
    if who in _REASONS:
        return _REASONS[who]
    if unmatched := re.fullmatch(r"none-of-(\d+)", who):
        number = int(unmatched[1])
        return (
            "no rule allows it"
            if number == 0
            else f"no rule of {number} polic{'y' if number == 1 else 'ies'} allows it"
        )
    if who.startswith("proxy/"):
        return f"the proxy itself: {who.removeprefix('proxy/')}"
    return who.removeprefix("default/")


def describe_handshake(reason: str | None) -> str:
    """Describe why a handshake failed. Envoy logs the error names of its TLS library."""
    error = reason or ""
    for mark, words in _HANDSHAKES:
        if mark in error:
            return words
    return f"it failed ({error})" if error else "it failed"


def caller_of(peer: str | None, settings: Settings) -> ends.Source:
    """Return a caller by the identity that a proxy logged."""
    if peer is None or peer == "none":
        return ends.ANONYMOUS
    account = MeshNames(settings).account(peer)
    return ends.ServiceAccount(*account) if account is not None else ends.SpiffeId(peer)
