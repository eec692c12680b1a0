"""Combined decisions: layers one after the other, rules in audit mode, and bytes that may not be HTTP.

A combination stays flat, and grows with the sum of its parts. The final verdicts of the first decision (it denies, or
asks the authorizer) come first, each guarded by the allows before it. Then comes the whole second decision. If an allow
of the second has no name of its own, it takes the name from the first: only then is the second written into each end of
the first.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network

from eastgate.basics.diagnostics import Code
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.envoy.plan.codes import NOT_A_TEST, NOT_AN_ATTRIBUTE
from eastgate.envoy.plan.decisions import NO_AUDIT, UNOPPOSED_NAME, Node, ProxyVerdict
from eastgate.envoy.plan.vantage import AT_GATEWAY, Vantage
from eastgate.ir import (
    ALWAYS,
    NEVER,
    And,
    Computed,
    InNetwork,
    Is,
    Layer,
    Not,
    OneOf,
    Predicate,
    Prefix,
    Refusal,
    Suffix,
    all_of,
    any_of,
    assume,
    at_port,
    needs_http,
)
from eastgate.ir.attributes import ADDRESS, BACKEND, Attribute
from eastgate.ir.symbolic.trees import DecisionNode, Entry, choice, flatten, leaves

# Tests that Envoy can make exactly as a policy means them. An approximation is not enough.


# Envoy adds, removes or rewrites them before a policy can look at them.
_ENVOYS_HEADERS = frozenset(
    {
        *("connection", "expect", "host", "http2-settings", "keep-alive", "proxy-connection", "te"),
        *("transfer-encoding", "upgrade", "x-forwarded-client-cert", "x-forwarded-proto"),
    }
)
# Envoy joins several values of these with commas, and drops empty values.
_JOINED_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "access-control-request-headers", "access-control-request-method"),
        *("access-control-request-private-network", "authentication", "authorization", "cache-control", "cdn-loop"),
        *("content-encoding", "content-length", "content-type", "grpc-accept-encoding", "grpc-timeout", "if-match"),
        *("if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "origin", "pragma", "proxy-status"),
        *("referer", "user-agent", "via", "x-client-trace-id", "x-forwarded-for", "x-forwarded-host"),
        *("x-forwarded-port", "x-request-id"),
    }
)
_COOKIE = "cookie"  # of HTTP/2
_NOT_NOTED = regex("[\x00\x02\x03]")  # characters that a proxy cannot note


def obstacle(atom: Is | Computed, vantage: Vantage) -> tuple[Code, str] | None:
    """Return the reason why a proxy at this vantage cannot test an atom, or None."""
    attributes = (atom.attribute,) if isinstance(atom, Is) else atom.attributes
    unseen = [attribute for attribute in attributes if not vantage.sees(attribute)]
    if unseen:
        return NOT_AN_ATTRIBUTE, f"a {vantage.name} does not know the {unseen[0]}"
    return None if _is_exact(atom) else (NOT_A_TEST, f"Envoy has no test that is exactly `{atom}`")


def joint_of(attribute: Attribute) -> str | None:
    """Return the separator with which Envoy joins the values of a header, or None."""
    if not attribute.is_header:
        return None
    return "," if attribute.key in _JOINED_HEADERS else "; " if attribute.key == _COOKIE else None


def _is_exact(atom: Is | Computed) -> bool:
    if isinstance(atom, Computed):
        return atom.pattern is not None and _sees(atom, atom.pattern[0])
    return not atom.joined and _sees(atom, atom.attribute) and not _NOT_NOTED.search(_texts(atom))


def _sees(atom: Is | Computed, attribute: Attribute) -> bool:
    """Return whether Envoy shows all values of an attribute that the test distinguishes."""
    if not attribute.is_header:
        return True
    if attribute.key in _ENVOYS_HEADERS or attribute.key.startswith("x-envoy-"):
        return False
    return joint_of(attribute) is None or not _tells_empty(atom, attribute)


def _tells_empty(atom: Is | Computed, attribute: Attribute) -> bool:
    if isinstance(atom, Computed):
        return atom.holds({attribute: ""})
    return isinstance(atom.matcher, OneOf) and "" in atom.matcher.values


def _texts(atom: Is) -> str:
    match atom.matcher:
        case OneOf(values):
            return "".join(map(str, values))
        case Prefix(text) | Suffix(text):
            return text
        case _:
            return ""


_MAX_ENDS = 20_000  # of one decision written into each end of another


class TooManyEnds(Exception):  # noqa: N818 - the name is a problem
    """The combination of two decisions has more ends than a proxy should get."""


def then(first: Node, second: Node) -> Node:
    """Combine two decisions that must BOTH allow, in this order. Raises TooManyEnds.

    An allow has the name of the last rule that decided.
    """
    if isinstance(first, ProxyVerdict):
        if first.is_final:
            return first
        return _name_verdicts(second, first.who) if first.who != UNOPPOSED_NAME else second
    if isinstance(second, DecisionNode) and not any(end.is_unopposed for end in _ends(second)):
        return choice(_finals(flatten(first)), second)
    ends = len(_ends(first)) * len(_ends(second))
    if isinstance(second, DecisionNode) and ends > _MAX_ENDS:
        raise TooManyEnds(f"its layers have {ends} ways through them")
    return choice(((when, then(node, second)) for when, node in first.tests), then(first.otherwise, second))


def _ends(node: Node) -> list[ProxyVerdict]:
    return list(leaves(node))


def or_else(first: Node, second: Node) -> Node:
    """Combine rules in audit mode: the second ones count if none of the first matches."""
    if isinstance(first, ProxyVerdict):
        return second if first == NO_AUDIT else first
    return choice(((when, or_else(node, second)) for when, node in first.tests), or_else(first.otherwise, second))


def noting(would: Node, matches: Node) -> Node:
    """Combine a would-be decision with rules that only log: where it allows, the matching rule is named."""
    if isinstance(would, ProxyVerdict):
        return would if would.is_final else or_else(matches, would)
    if len(_ends(would)) * len(_ends(matches)) > _MAX_ENDS:
        return would
    return choice(((when, noting(node, matches)) for when, node in would.tests), noting(would.otherwise, matches))


def _name_verdicts(node: Node, who: str) -> Node:
    if isinstance(node, ProxyVerdict):
        return ProxyVerdict(True, 200, who) if node.is_unopposed else node
    return choice(
        ((when, _name_verdicts(inner, who)) for when, inner in node.tests), _name_verdicts(node.otherwise, who)
    )


def _finals(entries: list[Entry[ProxyVerdict]]) -> Iterator[Entry[ProxyVerdict]]:
    """Yield the entries with a final verdict, each guarded by the entries before it."""
    allowed: list[Predicate] = []
    for when, verdict in entries:
        if verdict.is_final:
            guard = Not(either(allowed)) if allowed else ALWAYS
            yield Entry(all_of([when, guard]), verdict)
        else:
            allowed.append(when)


def either(predicates: Iterable[Predicate]) -> Predicate:
    """Return a predicate that ANY of these holds, with all networks in one test."""
    networks: dict[IPv4Network | IPv6Network, None] = {}
    rest: list[Predicate] = []
    for predicate in predicates:
        match predicate:
            case And(()):
                return ALWAYS
            case Is(attribute, InNetwork(inside)) if attribute == ADDRESS:
                networks.update(dict.fromkeys(inside))
            case _:
                rest.append(predicate)
    return any_of([Is(ADDRESS, InNetwork(tuple(networks))), *rest] if networks else rest)


# Bytes that are not read as HTTP


def unread(node: Node) -> Node:
    """Return the decision about bytes that are not read as HTTP: ALL requests that they may contain must be allowed."""
    return without(node, needs_http, lambda verdict: replace(verdict, status=int(Refusal.CLOSED)))


def without(
    node: Node, hidden: Callable[[Is | Computed], bool], refuse: Callable[[ProxyVerdict], ProxyVerdict]
) -> Node:
    """Return the decision without tests that cannot be made: it allows if every result of them would allow.

    `refuse` returns the refusal in place of a denial.
    """
    *tests, (_, last) = _Unread(hidden).entries(node)

    def concluded(verdict: ProxyVerdict) -> ProxyVerdict:
        return verdict if verdict.allowed else refuse(verdict)

    return choice([(when, concluded(verdict)) for when, verdict in tests], concluded(last))


class _Unread:
    """Removes tests from one decision. Chains that several routes share are processed once."""

    def __init__(self, hidden: Callable[[Is | Computed], bool]) -> None:
        self._hidden = hidden
        self._known: dict[int, list[Entry[ProxyVerdict]]] = {}

    def entries(self, node: Node) -> list[Entry[ProxyVerdict]]:
        """Return the entries without such tests. The last entry always holds."""
        if isinstance(node, ProxyVerdict):
            return [Entry(ALWAYS, node)]
        if id(node) not in self._known:
            self._known[id(node)] = list(_reachable(self._choice(node)))
        return self._known[id(node)]

    def _choice(self, node: DecisionNode[ProxyVerdict]) -> Iterator[Entry[ProxyVerdict]]:
        for when, inner in [*node.tests, (ALWAYS, node.otherwise)]:
            possible, certain = (assume(when, self._hidden, held=held) for held in (True, False))
            entries = self.entries(inner)
            if possible != certain:  # the test may or may not hold: deny if either way denies
                yield from (Entry(all_of([possible, denied]), verdict) for denied, verdict in _finals(entries))
            if certain != NEVER:
                yield from (Entry(all_of([certain, asked]), verdict) for asked, verdict in entries)


def _reachable(entries: Iterator[Entry[ProxyVerdict]]) -> Iterator[Entry[ProxyVerdict]]:
    """Leave out entries with the predicate of an earlier entry, and entries after one that always holds."""
    seen: set[Predicate] = set()
    for when, verdict in entries:
        if when not in seen and when != NEVER:
            seen.add(when)
            yield Entry(when, verdict)
        if when == ALWAYS:
            return


# The enforcer of a layer at a gateway: the Envoy itself, or its authorizer.


class Enforcer(enum.StrEnum):
    """The decider at a gateway."""

    ENVOY = "envoy"
    AUTHORIZER = "authorizer"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class LayerEnforcement:
    """The decider of a layer, and the reason if it is not the Envoy alone. `asked` are the authorizers in its rules."""

    enforcer: Enforcer
    reason: str | None = None
    asked: tuple[str, ...] = ()


def enforcement_at_gateway(layer: Layer, port: int, backend: str | None) -> LayerEnforcement:
    """Return the decider of a layer at a port, on the way to a backend.

    If all layers of a way together have too many ends for an Envoy, the authorizer decides anyway.
    """
    at = at_port(layer, port)
    vantage = AT_GATEWAY.knowing({BACKEND: backend})
    asked = tuple(sorted({ask.authorizer for ask in at.asks}))
    problem = next(filter(None, (obstacle(atom, vantage) for atom in at.atoms(observed=False))), None)
    if problem is not None:
        return LayerEnforcement(Enforcer.AUTHORIZER, problem[1], asked)
    return LayerEnforcement(Enforcer.BOTH if asked else Enforcer.ENVOY, None, asked)
