"""Lines of a gateway's log: the decider, and whether the manifests still agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eastgate import Authority, load
from eastgate.authority.authority import programs_of
from eastgate.authority.questions import QuestionError
from eastgate.cluster.targets import GatewayNamed
from eastgate.control.access_log import Observation
from eastgate.control.deciders import Deciders
from eastgate.control.events import Decided
from eastgate.control.gateway_nodes import ports_of_gateway
from eastgate.envoy.plan.gateway_planner import plan_destinations
from eastgate.local.event_text import EventText
from eastgate.reports.why.proxies import explain_observation
from tests.local.agents import AGENTS, POLICIES

AT_BACKEND = "XAccessPolicy.agentic.prototype.x-k8s.io/prod/at-backend#0"
LINE = Observation(
    "request",
    "gateway:prod/gw",
    8080,
    "spiffe://cluster.local/ns/prod/sa/agent",
    "127.64.0.1:4000",
    True,
    f"200:{AT_BACKEND}",
    status=200,
    method="POST",
    host="maths.example",
    path="/mcp",
    detail="via_upstream",
    mcp_method="tools/call",
    tool="add",
)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("agents")
    (folder / "agents.yaml").write_text(AGENTS)
    (folder / "policies.yaml").write_text(POLICIES)
    return load(folder)


def destination(authority: Authority, title: str) -> str:
    world = authority.world
    group = ports_of_gateway(world, world.gateways["prod/gw"])[8080]
    named = GatewayNamed("prod", "gw")
    layers_at = lambda point: programs_of(authority).program(point).layers  # noqa: E731
    destinations = plan_destinations(named, group, layers_at, world, authority.settings)
    return next(each.id for each in destinations.values() if each.title.startswith(title))


def test_a_rule_of_the_backend_is_named_with_its_line(authority: Authority) -> None:
    line = replace(LINE, destination=destination(authority, "HTTPRoute prod/maths"))
    decider = Deciders().decider_of(line, authority)
    assert (decider.policy, decider.rule) == ("XAccessPolicy/prod/at-backend", 0)
    assert Path(decider.file or "").name == "policies.yaml"


@pytest.mark.parametrize(
    ("title", "decision", "text"),
    [
        ("no route", "404:none-of-0", "no route takes it"),
        ("HTTPRoute prod/web rule 2", "500:proxy/direct_response", "the route is closed: the gateway cannot do all"),
        ("HTTPRoute prod/web rule 0", "503:proxy/direct_response", "no server is behind the route"),
        ("HTTPRoute prod/maths", "400:unread-message", "the MCP message cannot be read for certain"),
        ("HTTPRoute prod/maths", "503:authorizer-without-answer", "the authorizer did not answer"),
    ],
)
def test_reasons_that_are_no_rule(authority: Authority, title: str, decision: str, text: str) -> None:
    line = replace(LINE, decision=decision, allowed=False, destination=destination(authority, title))
    assert Deciders().decider_of(line, authority).text.startswith(text)


def test_why_compares_a_line_with_the_way_that_the_request_took(authority: Authority) -> None:
    line = replace(LINE, destination=destination(authority, "HTTPRoute prod/maths"))
    why = explain_observation(line, authority)
    assert why.comparison.holds
    assert why.line["way"] == "HTTPRoute prod/maths rule 0 -> XBackend prod/maths"
    assert why.decision is not None
    assert why.decision.policy == "XAccessPolicy/prod/at-backend"


@pytest.mark.parametrize("tool", ["echo", "remove"])
def test_why_says_that_a_verdict_would_be_another_one_today(authority: Authority, tool: str) -> None:
    line = replace(LINE, destination=destination(authority, "HTTPRoute prod/maths"), tool=tool)
    assert explain_observation(line, authority).comparison.holds is False


def test_routes_may_have_changed_since(authority: Authority) -> None:
    why = explain_observation(replace(LINE, destination="prod/maths#0~00000000.0"), authority)
    assert why.comparison.holds is None
    assert why.line["way"] is None


@pytest.mark.parametrize(
    "decision", ["400:unread-message", "503:authorizer-without-answer", "500:proxy/direct_response"]
)
def test_what_the_gateway_refuses_by_itself_is_held_against_no_policy(authority: Authority, decision: str) -> None:
    line = replace(LINE, decision=decision, allowed=False, destination=destination(authority, "HTTPRoute prod/maths"))
    assert explain_observation(line, authority).comparison.holds is None


def test_the_answer_of_an_authorizer_is_not_known_to_the_manifests(authority: Authority) -> None:
    at = destination(authority, "HTTPRoute prod/maths")
    line = replace(LINE, decision=f"403:{AT_BACKEND}", allowed=False, destination=at, asked=True)
    assert explain_observation(line, authority).comparison.holds is None


def test_a_connection_is_explained_by_its_requests(authority: Authority) -> None:
    line = replace(LINE, level="connection", decision="200:open")
    assert explain_observation(line, authority).decision is None


def test_an_undeclared_gateway(authority: Authority) -> None:
    with pytest.raises(QuestionError, match="no manifest declares gateway:prod/none"):
        explain_observation(replace(LINE, workload="gateway:prod/none"), authority)


def test_an_event_tells_the_message_and_the_gateway(authority: Authority) -> None:
    line = replace(LINE, destination=destination(authority, "HTTPRoute prod/maths"))
    text = EventText(lambda: authority).line(Decided(line, 7))
    assert "allow 200  sa:prod/agent -> gateway:prod/gw:8080 POST /mcp tools/call add  XAccessPolicy/prod/at-" in text
