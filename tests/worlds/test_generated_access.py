"""On generated AccessPolicies the engine, the reference evaluator and the oracle give the same answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Question, Settings
from eastgate.engine import reference
from tests.worlds import access_generate as generate
from tests.worlds.access_oracle import AccessRules, Call, Manifest
from tests.worlds.test_generated_clusters import authority_of


def every_call(backend: str) -> Iterator[Call]:
    """Yield every identity with every message, on some of the paths and hosts."""
    paths = itertools.cycle(itertools.product(generate.PATHS, ["a.example", "b.example", "example"]))
    for identity in [None, *generate.IDENTITIES]:
        for mcp_method in generate.METHODS:
            for tool in ["add", "del", "other"] if mcp_method in ("tools/call", "prompts/get") else [None]:
                yield Call(identity, mcp_method, tool, "POST", *next(paths), backend)
        for method, session in (("GET", None), ("DELETE", None), ("DELETE", "s")):
            yield Call(identity, None, None, method, *next(paths), backend, session)


def question(call: Call, to: str, answers: dict[str, str]) -> Question:
    return Question.of(
        call.identity or "anonymous",
        to,
        port=80,
        method=call.method,
        path=call.path,
        host=call.host,
        mcp_method=call.mcp_method,
        tool=call.tool,
        headers={"mcp-session-id": call.session} if call.session is not None else {},
        external_auth=answers,
    )


@settings(max_examples=150, deadline=None)
@given(generate.policies, generate.answers, st.sampled_from(["deny", "proceed"]))
def test_engine_reference_and_oracle_agree(policies: list[Manifest], answers: dict[str, str], unlisted: str) -> None:
    authority = authority_of(
        [*generate.FIXED, *policies], Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    )
    access_rules = AccessRules(policies, answers, unlisted)
    for backend in generate.BACKENDS:
        for call in every_call(backend):
            alone = authority.decide(question(call, f"backend:n/{backend}", answers))
            assert alone.allowed == access_rules.allows(call, through_gateway=False), (call, alone.reason)
            assert alone.outcome == reference.decide(alone.layers, alone.arrival.request)
    for call in every_call("b1"):
        through = authority.decide(question(call, "gateway:n/g", answers))
        ways = [Call(**{**vars(call), "backend": backend}) for backend in generate.BACKENDS]
        assert through.allowed == all(access_rules.allows(way, through_gateway=True) for way in ways), (
            call,
            through.reason,
        )
        assert through.outcome == reference.decide(through.layers, through.arrival.request)
        assert through.trace().outcome == through.outcome


@settings(max_examples=60, deadline=None)
@given(generate.policies, generate.answers, st.randoms(use_true_random=False))
def test_the_order_of_policies_changes_nothing(
    policies: list[Manifest], answers: dict[str, str], random: st.DataObject
) -> None:
    shuffled = list(policies)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    chosen = Settings.from_mapping({"trustDomain": "td"})
    one, other = authority_of([*generate.FIXED, *policies], chosen), authority_of([*generate.FIXED, *shuffled], chosen)
    for call in every_call("b1"):
        asked = question(call, "gateway:n/g", answers)
        first, second = one.decide(asked), other.decide(asked)
        assert (first.verdict, first.policy, first.rule) == (second.verdict, second.policy, second.rule)
