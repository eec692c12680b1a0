"""The interpreted configuration for drawn layers agrees with the reference evaluator."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from itertools import product
from random import Random

import pytest

from eastgate import Settings
from eastgate.basics.regexes import regex
from eastgate.engine import reference
from eastgate.envoy.config.clusters import SocketAddress
from eastgate.envoy.config.inbound_port import InboundPort
from eastgate.envoy.config.sidecar import inbound_resources, shared_resources
from eastgate.envoy.plan import plan_port
from eastgate.ir import (
    ALWAYS,
    AccountsOf,
    AllowAny,
    And,
    Chain,
    Computed,
    Deny,
    InNetwork,
    Is,
    Known,
    Layer,
    Not,
    OneOf,
    Or,
    Origin,
    Placement,
    PolicyRef,
    Predicate,
    Prefix,
    Present,
    Refusal,
    Request,
    Rule,
    Stage,
    Suffix,
    known,
)
from eastgate.ir.addresses import comparable_host
from eastgate.ir.attributes import (
    ADDRESS,
    HANDED_PATH,
    HOST,
    IDENTITY,
    MESH_NAME,
    METHOD,
    PATH,
    PORT,
    Attribute,
    header,
    query,
)
from eastgate.ir.paths import comparable_path, handed_path, is_respelled
from eastgate.ir.symbolic.names import MeshNames
from tests.envoy.plan.interpreter import Interpreter, Sent

SETTINGS = Settings.from_mapping({"trustDomain": "td"})
NAMES = MeshNames(SETTINGS)
X, Y, FOREIGN, DEEP = (
    "spiffe://td/ns/a/sa/x",
    "spiffe://td/ns/b/sa/y",
    "spiffe://other/ns/a/sa/x",
    "spiffe://td/ns/a/sa/x/deeper",
)
PEERS, ADDRESSES = [X, Y, FOREIGN, DEEP, None], ["10.0.0.1", "192.168.0.1"]
TARGETS = [
    "/",
    "//",
    "/a",
    "/a/b",
    "/ab",
    "/x.png",
    "/a?team=red",
    "/a?team=blue&team=red",
    "/u%40me",
    "/u@me",
    "/a%2fb",
]
HOSTS = ["h", "H:80", "b.example."]
TEAMS = [(), ("red",), ("blue", "red"), ("",)]
TEAM, QUERY = header("x-team"), query("team")


def _one_of(*values: str | int) -> OneOf:
    return OneOf(frozenset(values))


def _pattern(text: str) -> Computed:
    compiled = regex(text)
    return Computed(
        text, frozenset({PATH}), lambda values: compiled.fullmatch(str(values[PATH])) is not None, pattern=(PATH, text)
    )


ON_CONNECTIONS: list[Predicate] = [
    ALWAYS,
    *(
        Is(IDENTITY, matcher)
        for matcher in (_one_of(X), _one_of(Y, FOREIGN), _one_of(DEEP), AccountsOf("td", "a"), Present())
    ),
    Is(ADDRESS, InNetwork((ip_network("10.0.0.0/8"),))),
    Not(Is(IDENTITY, AccountsOf("td", "b"))),
    Or((Is(IDENTITY, _one_of(FOREIGN)), Is(MESH_NAME, Suffix(".serviceaccount.identity.linkerd.td")))),
]
ON_REQUESTS: list[Predicate] = [
    *(Is(METHOD, matcher) for matcher in (_one_of("GET"), _one_of("GET", "PUT"), Prefix("P"), Suffix("T"), Present())),
    *(
        Is(PATH, matcher)
        for matcher in (_one_of("/"), _one_of("/a", "/u@me"), Prefix("/u@"), Suffix(".png"), Prefix(""))
    ),
    *(_pattern(text) for text in ("/", "/a.*", "/+", "//", "/?a?", "/.*@.*")),
    *(Is(HOST, matcher) for matcher in (_one_of("h"), Suffix(".example"))),
    *(Is(TEAM, matcher) for matcher in (_one_of("red"), _one_of("red", "blue"), Prefix("b"), Suffix("d"), Present())),
    Is(QUERY, _one_of("red")),
]


def _draw(random: Random) -> Predicate:
    parts: list[Predicate] = [random.choice(ON_CONNECTIONS), random.choice(ON_REQUESTS)]
    more: list[Predicate] = [Not(random.choice(ON_REQUESTS)), Or(tuple(random.sample(ON_REQUESTS, 2)))]
    if random.random() < 0.4:
        parts.append(random.choice(more))
    return And(tuple(parts))


def _rules(predicates: list[Predicate]) -> tuple[Rule, ...]:
    return tuple(
        Rule(predicate, Origin(PolicyRef("P", "n", f"p{number}"), number))
        for number, predicate in enumerate(predicates)
    )


def _layers(random: Random) -> list[Layer]:
    connections = _rules(random.sample(ON_CONNECTIONS, 3))
    first = Chain((AllowAny("allow", connections, Refusal.CLOSED),))
    second = Chain(
        (
            Deny("deny", _rules([_draw(random) for _ in range(2)]), Refusal.NOT_FOUND),
            AllowAny("allow", _rules([ALWAYS if random.random() < 0.2 else _draw(random) for _ in range(6)])),
        )
    )
    return [Layer(Placement(None, "network"), first), Layer(Placement(None, "application"), second)]


def _request(sent: Sent) -> Request:
    teams = [value for name, value in sent.headers if name == "x-team"]
    _, _, asked = sent.target.partition("?")
    queries = [pair.partition("=")[2] for pair in asked.split("&") if pair]
    handed = handed_path(sent.target)
    on_connection: dict[Attribute, Known] = {
        IDENTITY: sent.peer,
        MESH_NAME: NAMES.mesh_name(sent.peer) if sent.peer is not None else None,
        PORT: 80,
        ADDRESS: sent.address,
    }
    on_request: dict[Attribute, Known] = {
        METHOD: sent.method,
        HOST: comparable_host(sent.host),
        PATH: comparable_path(sent.target),
        TEAM: known(teams),
        QUERY: known(queries),
        **({HANDED_PATH: handed} if is_respelled(handed) else {}),
    }
    return Request({**on_connection, **(on_request if sent.method is not None else {})})


def _interpreter(layers: list[Layer]) -> Interpreter:
    plan = plan_port(layers, 80, SETTINGS, [X, FOREIGN, DEEP])
    assert plan.refused is None
    inbound = InboundPort("a/p0", "127.0.0.1", 80, 80)
    return Interpreter(list(inbound_resources(inbound, plan, SocketAddress("/app"), shared_resources(plan))), 80)


def _concerning(layers: list[Layer], request: Request) -> list[Layer]:
    """Leave out rules that the connection excludes. If it decides a rule, keep only such rules.

    One match is enough, and the reference evaluator tries all completions of the attributes in the others.
    """

    def parts(rule: Rule) -> tuple[Predicate, ...]:
        return rule.when.parts if isinstance(rule.when, And) else (rule.when,)

    def is_possible(rule: Rule) -> bool:
        return all(reference.holds(part, request) for part in parts(rule) if part in ON_CONNECTIONS)

    def reduced(stage: Stage) -> Stage:
        assert isinstance(stage, Deny | AllowAny)
        possible = [rule for rule in stage.rules if is_possible(rule)]
        settled = [rule for rule in possible if all(part in ON_CONNECTIONS for part in parts(rule))]
        return replace(stage, rules=tuple(settled or possible))

    return [Layer(layer.at, Chain(tuple(map(reduced, layer.otherwise.stages)))) for layer in layers]


@pytest.mark.parametrize("seed", range(20))
def test_what_is_emitted_means_what_the_layers_mean(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    layers = _layers(random)
    interpreter = _interpreter(layers)
    every = list(product(PEERS, ADDRESSES, ["GET", "PUT"], TARGETS, HOSTS, TEAMS))
    for peer, address, method, target, host, teams in random.sample(every, 60):
        sent = Sent(peer, address, method, target, host, tuple(("x-team", team) for team in teams))
        outcome, expected = interpreter.say(sent), reference.decide(layers, _request(sent))
        assert (outcome.allowed, outcome.status) == (expected.allowed, expected.status), (sent, outcome, expected)
    allowed: list[list[Layer]] = []
    for raw in (Sent(peer, address) for peer, address in product(PEERS, ADDRESSES)):
        request = _request(raw)
        concerning = _concerning(layers, request)
        if interpreter.say(raw).allowed and concerning not in allowed:
            assert reference.decide(concerning, request).allowed
            allowed.append(concerning)


@pytest.mark.parametrize(
    ("denied", "peer", "allowed"), [([], X, True), ([], Y, False), ([ON_REQUESTS[0]], X, False), ([ALWAYS], X, False)]
)
def test_bytes_come_in_where_no_rule_on_requests_may_deny_them(
    denied: list[Predicate], peer: str, allowed: bool
) -> None:
    layers = [
        Layer(Placement(None, "network"), Chain((AllowAny("allow", _rules([ON_CONNECTIONS[1]]), Refusal.CLOSED),))),
        Layer(Placement(None, "application"), Chain((Deny("deny", _rules(denied)),))),
    ]
    assert _interpreter(layers).say(Sent(peer, "10.0.0.1")).allowed is allowed
