"""Searches find the first rule that matches, for every way to file the rules."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from eastgate.engine import search
from eastgate.engine.clauses import ClausesByCaller
from eastgate.engine.search import build_search
from eastgate.ir import ALWAYS, AccountsOf, And, Computed, Is, Known, Not, OneOf, Or, Predicate, Prefix, Request, Suffix
from eastgate.ir.attributes import IDENTITY, METHOD, PATH, PORT, header
from tests.engine.brute_force import holds

TEAM = header("x-team")
ACCOUNTS = [f"spiffe://td/ns/{namespace}/sa/{name}" for namespace, name in product("ab", "xy")]
IDENTITIES = [*ACCOUNTS, "spiffe://td/workload", None]
TEXTS = ["", "/", "/a", "/a/b", "/ab", "b", "a/b"]
PATHS = ["/", "/a", "/a/b", "/ab", "/c", None]
TEAMS: list[Known] = ["red", ("red", "blue"), ("green", "red,blue"), "red,blue", None]
REQUESTS = [
    {IDENTITY: identity, PORT: port, PATH: path, TEAM: team}
    for identity, port, path, team in product(IDENTITIES, [80, 443], PATHS, TEAMS)
]

CALLERS: list[Predicate] = [
    ALWAYS,
    Is(IDENTITY, AccountsOf("td", "a")),
    *(Is(IDENTITY, OneOf(frozenset(names))) for names in (ACCOUNTS[:1], ACCOUNTS[1:3], ["spiffe://td/workload"])),
    Or((Is(IDENTITY, OneOf(frozenset(ACCOUNTS[3:]))), Is(IDENTITY, AccountsOf("td", "b")))),
]
ON_PATH: list[Predicate] = [
    *(Is(PATH, Prefix(text)) for text in TEXTS),
    *(Is(PATH, Suffix(text)) for text in TEXTS),
    *(Is(PATH, OneOf(frozenset(texts))) for texts in (["/a"], ["/", "/a/b"], [])),
]
ON_TEAM: list[Predicate] = [
    Is(TEAM, OneOf(frozenset({"red"}))),
    Is(TEAM, OneOf(frozenset({"red,blue"}))),
    Is(TEAM, OneOf(frozenset({"red,blue"})), joined=True),  # all values as one text, which no single value equals
    Is(TEAM, Prefix("g")),
]


def _rule(random: Random) -> Predicate:
    path: Predicate = random.choice(ON_PATH)
    team: Predicate = random.choice(ON_TEAM)
    rests: list[list[Predicate]] = [
        [ALWAYS],
        [path],
        [Or((path, random.choice(ON_PATH)))],
        [Or((path, team))],
        [path, team],
        [team],
        [path, Not(random.choice(ON_PATH))],
        [path, random.choice(ON_PATH)],
    ]
    ports: list[Predicate] = [ALWAYS, ALWAYS, Is(PORT, OneOf(frozenset({80})))]
    return And((random.choice(CALLERS), random.choice(ports), *random.choice(rests)))


@pytest.mark.parametrize("copies", [-1, 0, 1, 4])  # copies of rules for many callers beside rules for few
@pytest.mark.parametrize("short", [0, 4, 100])  # the largest list without an index
def test_the_first_rule_that_matches_is_found(monkeypatch: pytest.MonkeyPatch, short: int, copies: int) -> None:
    monkeypatch.setattr(search, "_MAX_UNINDEXED_RULES", short)
    monkeypatch.setattr(search, "_MAX_COPIES_PER_CLAUSE", copies)
    random = Random(short * 10 + copies)  # noqa: S311
    for _ in range(15):
        rules = [_rule(random) for _ in range(random.randint(1, 12))]
        find = build_search(ClausesByCaller.of(rules), range(len(rules) + 1))
        for values in random.sample(REQUESTS, 60):
            first = next((rank for rank, rule in enumerate(rules) if holds(rule, values)), len(rules))
            assert find(Request(values)) == first, (rules, values)


def test_of_many_rules_only_those_are_evaluated_that_the_path_may_meet() -> None:
    looked_at: list[int] = []

    def rule(number: int, path: Predicate) -> Predicate:
        def note(_: object) -> bool:
            looked_at.append(number)
            return False

        noted = Computed(f"rule {number}", frozenset({PATH}), note)
        return And((noted, Is(METHOD, OneOf(frozenset({"GET"}))), path))

    exact = [Is(PATH, OneOf(frozenset({f"/{number}"}))) for number in range(100)]
    begun = [Is(PATH, Prefix(f"/{number}/")) for number in range(100)]
    ended = [Is(PATH, Suffix(f".{number}")) for number in range(100)]
    two = [Or((Is(PATH, OneOf(frozenset({f"/{number}/x"}))), Is(PATH, Suffix(f".{number}")))) for number in range(100)]
    paths: list[Predicate] = [*exact, *begun, *ended, *two]
    rules = [rule(number, path) for number, path in enumerate(paths)]
    find = build_search(ClausesByCaller.of(rules), range(len(rules) + 1))
    for path, expected in [("/7", [7]), ("/7/x", [107, 307]), ("/x.7", [207, 307]), ("/x", [])]:
        looked_at.clear()
        assert find(Request({IDENTITY: None, PORT: 80, METHOD: "GET", PATH: path})) == len(rules)
        assert sorted(looked_at) == expected
