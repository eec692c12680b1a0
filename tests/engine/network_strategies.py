"""Generated layers and requests of networks: labels, addresses, ranges of ports, transports."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network

from hypothesis import strategies as st

from eastgate.ir import (
    AllowAny,
    And,
    Between,
    Chain,
    Effect,
    FirstMatch,
    InNetwork,
    Is,
    Known,
    Labelled,
    Layer,
    Not,
    OneOf,
    Or,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Refusal,
    Request,
    Rule,
    Site,
    Step,
    Suffix,
    Value,
)
from eastgate.ir.attributes import (
    DESTINATION_ADDRESS,
    DESTINATION_DOMAIN,
    DESTINATION_LABELS,
    DESTINATION_NODE,
    IDENTITY,
    PACKET_SOURCE,
    PORT,
    PORT_NAME,
    SOURCE_LABELS,
    SOURCE_NAMESPACE,
    TRANSPORT,
    VICINITY,
    Attribute,
)
from eastgate.ir.labels import Operator, Requirement, Selector

_LABELS: Sequence[Known] = (None, "", "app=a", "app=b", "app=a,tier=x", "tier=y")
_ADDRESSES: Sequence[Known] = ("10.0.0.1", "10.0.0.200", "10.0.1.0", "192.168.0.1", "fd00::1")
_NETWORKS = [ip_network(text) for text in ("10.0.0.0/24", "10.0.0.128/25", "10.0.0.0/8", "0.0.0.0/0", "::/0")]
_VALUES: dict[Attribute, Sequence[Known]] = {
    SOURCE_NAMESPACE: _LABELS,
    SOURCE_LABELS: _LABELS,
    DESTINATION_LABELS: _LABELS,
    DESTINATION_NODE: _LABELS,
    PACKET_SOURCE: _ADDRESSES,
    DESTINATION_ADDRESS: _ADDRESSES,
    DESTINATION_DOMAIN: (None, "a.example", "b.a.example"),
    PORT: (1, 80, 81, 443, 65535),
    PORT_NAME: (None, "http", "dns", ("http", "web")),
    TRANSPORT: ("TCP", "UDP", "SCTP"),
    VICINITY: (None, "itself", "node"),
}

_compared = st.builds(
    lambda key, operator, values: Requirement(
        key, operator, values if operator in (Operator.IN, Operator.NOT_IN) else frozenset()
    ),
    st.sampled_from(["app", "tier"]),
    st.sampled_from(Operator),
    st.frozensets(st.sampled_from(["a", "b", "x"]), min_size=1, max_size=2),
)
_selector = st.builds(
    Selector.of,
    st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["a", "b", "x"]), max_size=1),
    st.lists(_compared, max_size=2),
)


def _one_of(values: Sequence[Value]) -> st.SearchStrategy[OneOf]:
    return st.frozensets(st.sampled_from(values), max_size=2).map(OneOf)


_labels_atom = st.builds(
    Is,
    st.sampled_from([SOURCE_NAMESPACE, SOURCE_LABELS, DESTINATION_LABELS, DESTINATION_NODE]),
    st.builds(Labelled, _selector),
)
_address_atom = st.builds(
    Is,
    st.sampled_from([PACKET_SOURCE, DESTINATION_ADDRESS]),
    st.lists(st.sampled_from(_NETWORKS), max_size=2).map(lambda networks: InNetwork(tuple(networks))),
)
_edges = st.sampled_from([1, 80, 81, 443, 65535])
_port_atom = st.builds(Is, st.just(PORT), _one_of([80, 443, 65535]) | st.builds(Between, _edges, _edges))
_other_atom = st.one_of(
    st.builds(Is, st.just(TRANSPORT), _one_of(["TCP", "UDP", "SCTP"])),
    st.builds(Is, st.just(PORT_NAME), _one_of(["http", "dns", "web"])),
    st.builds(Is, st.just(VICINITY), _one_of(["itself", "node"])),
    st.builds(Is, st.just(DESTINATION_DOMAIN), _one_of(["a.example"]) | st.just(Suffix(".a.example"))),
)
atom: st.SearchStrategy[Predicate] = _labels_atom | _address_atom | _port_atom | _other_atom


def _wider(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    parts = st.lists(inner, max_size=3).map(tuple)
    return st.builds(And, parts) | st.builds(Or, parts) | st.builds(Not, inner)


predicate: st.SearchStrategy[Predicate] = st.recursive(atom, _wider, max_leaves=5)


def rule_of(when: Predicate, number: int) -> Rule:
    """Draw a rule of a policy with a number."""
    return Rule(when, Origin(PolicyRef("P", None, f"p{number}"), 0))


rule = st.builds(rule_of, predicate, st.integers(0, 10**6))
step = st.builds(Step, rule, st.sampled_from(Effect))
steps = st.lists(step, max_size=4).map(tuple)
_tier = st.builds(FirstMatch, st.just("tier"), steps, st.just(Effect.PASS), st.just(Refusal.CLOSED))
_isolated = st.builds(AllowAny, st.just("allow"), st.lists(rule, max_size=3).map(tuple), st.just(Refusal.CLOSED))
layer = st.builds(
    lambda stages: Layer(Placement(Site.NETWORK, "ingress"), Chain(tuple(stages))),
    st.lists(_tier | _isolated, min_size=1, max_size=3),
)


@st.composite
def known_request(draw: st.DrawFn) -> Request:
    known = {attribute: draw(st.sampled_from(values)) for attribute, values in _VALUES.items()}
    return Request({IDENTITY: None, **known})


@st.composite
def any_request(draw: st.DrawFn) -> Request:
    """Draw a request with up to four unknown attributes: more make the reference evaluator too slow."""
    request = draw(known_request())
    unknown = draw(st.sets(st.sampled_from(sorted(_VALUES)), max_size=4))
    return Request({attribute: value for attribute, value in request.values.items() if attribute not in unknown})
