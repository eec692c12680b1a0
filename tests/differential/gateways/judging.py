"""The comparison of a gateway with the engine. One table lists the intended differences. All others are findings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from eastgate import Authority
from eastgate.cluster import HeaderModifier, Redirect, UrlRewrite
from eastgate.envoy.plan.gateway import GatewayDestination
from eastgate.ir import Unroutable
from eastgate.ir.addresses import is_host
from eastgate.ir.paths import handed_path, is_refused, is_respelled
from tests.differential.gateways.asking import GatewayAsk
from tests.differential.gateways.bench import SHOWN, GatewayAnswer
from tests.differential.gateways.expecting import Expected, denied_elsewhere, expect, may_call
from tests.differential.gateways.world import BACKENDS
from tests.differential.judging import expected_name

__all__ = ["KNOWN", "Known", "difference", "known"]


@dataclass(frozen=True, slots=True)
class Known:
    """An intended difference: the gateway refuses a request that the engine may allow. Never the other way round."""

    name: str
    reason: str
    applies: Callable[[GatewayAsk, GatewayAnswer], bool]


def _who(answer: GatewayAnswer) -> str:
    return answer.logged.who if answer.logged is not None else ""


def _decision(answer: GatewayAnswer) -> str:
    return answer.logged.decision if answer.logged is not None else ""


def _is_unclear(ask: GatewayAsk) -> bool:
    """Return whether a gateway may refuse the request: many values, joined values, or ambiguous paths."""
    names = [name.lower() for name, _ in ask.http.headers]
    many = ask.http.target.count("&") >= 8 or any(names.count(name) > 8 for name in names)
    path = handed_path(ask.http.target)
    return many or names.count("user-agent") > 1 or is_respelled(path) or is_refused(path)


KNOWN = (
    Known(
        "refused-by-the-proxy",
        "Envoy answers 4xx to a malformed request, and asks no policy",
        lambda _, answer: re.match(r"(0|4..):proxy/", _decision(answer)) is not None,
    ),
    Known(
        "not-http-to-the-inspector",
        "a request line with bytes beyond ASCII is not HTTP for Envoy's inspector, and a gateway accepts only HTTP",
        lambda ask, answer: answer.logged is None and answer.status == 0 and not ask.http.target.isascii(),
    ),
    Known(
        "bad-host",
        "a gateway refuses an invalid host before it asks a policy, also without a policy",
        lambda ask, answer: _decision(answer) == "400:bad-host" and not is_host(ask.http.hosts),
    ),
    Known(
        "no-such-session",
        "a session id that this caller did not get for this server is invalid: 404, as in the protocol",
        lambda ask, answer: _decision(answer) == "404:no-such-session" and ask.header("mcp-session-id") is not None,
    ),
    Known(
        "no-session",
        "GET opens the stream of a session: without one it is answered with 405",
        lambda ask, answer: _decision(answer) == "405:no-session" and ask.http.method == "GET",
    ),
    Known(
        "unread-message",
        "a body that is not certainly an MCP message gets 400 if policies read messages",
        lambda ask, answer: _decision(answer).startswith("400:") and ask.messages is None,
    ),
    Known(
        "unclear-values",
        "more than eight values of one name with a pattern, values that Envoy joins, paths that an expression "
        "of a route could distinguish, and encoded slashes if paths choose among policies, are refused",
        lambda ask, answer: _who(answer) in ("unclear-values", "unclear-route") and _is_unclear(ask),
    ),
)


def known(ask: GatewayAsk, answer: GatewayAnswer) -> Known | None:
    return next((each for each in KNOWN if each.applies(ask, answer)), None)


def difference(
    authority: Authority, ask: GatewayAsk, answer: GatewayAnswer, destination: GatewayDestination | None
) -> str | None:
    """Return the difference in words, or None. `destination` is the one in the log."""
    expected = expect(authority, ask, destination)
    reached = answer.server is not None
    if not expected:
        named = destination.id if destination is not None else "nowhere"
        return f"the gateway routed it to {named}, which is no backend of the engine's rule"
    if reached and not all(each.decision.allowed for each in expected):
        return f"it reached {answer.server} ({_decision(answer)}), and the engine denies ({_reason(expected)})"
    if reached and (misread := _difference_of_readings(authority, ask, destination)):
        return f"it reached {answer.server}, which may read it as a denied request ({misread})"
    if known(ask, answer) is not None:
        return None if not reached else f"it was refused ({_decision(answer)}), and reached {answer.server}"
    if answer.logged is None:
        if answer.status == 0 and not any(each.decision.allowed for each in expected):
            return None  # no listener accepts such a name in a handshake
        return f"the gateway closed it ({answer.status}), and the engine says {_reason(expected)}"
    if destination is None:
        return f"the log names a destination that is not there: {answer.logged}"
    [one] = expected
    if destination.routed != one.routed:
        taken = f"{one.routed.route.key}#{one.routed.rule}" if one.routed is not None else "none"
        return f"the gateway took {destination.id}, the engine {taken}"
    if one.decision.allowed:
        return _difference_of_allowed(authority, ask, answer, destination, one)
    status = int(_decision(answer).partition(":")[0] or 0)
    if status != one.decision.status and not _is_unread(ask, status, one):
        return f"the gateway decides {_decision(answer)}, the engine {one.decision.status} ({_reason(expected)})"
    if not _is_shown(ask, answer, status):
        return f"the gateway decides {_decision(answer)} and answers {answer.status} {answer.body!r}"
    return _difference_of_rules(answer, one)


def _difference_of_readings(
    authority: Authority, ask: GatewayAsk, destination: GatewayDestination | None
) -> str | None:
    """Return why the path that the server may read is denied, or None."""
    if destination is None or not is_refused(handed_path(ask.http.target)):
        return None
    return denied_elsewhere(authority, ask, destination)


def _reason(expected: list[Expected]) -> str:
    return "; ".join(f"{each.decision.status} {each.decision.reason}" for each in expected)


def _is_unread(ask: GatewayAsk, status: int, one: Expected) -> bool:
    return status == 400 and one.decision.status == 403 and ask.messages is None


def _is_shown(ask: GatewayAsk, answer: GatewayAnswer, status: int) -> bool:
    """Return whether a client sees the status of a decision, as HTTP, as a JSON-RPC error, or as a gRPC status."""
    if answer.status == status or _is_grpc(ask):
        return True
    return answer.status == 200 and status == 403 and (not answer.body or b'"error"' in answer.body)


def _is_grpc(ask: GatewayAsk) -> bool:
    """Return whether the gateway itself answers in gRPC."""
    return (ask.header("content-type") or "").startswith("application/grpc")


def _difference_of_rules(answer: GatewayAnswer, one: Expected) -> str | None:
    wanted = _name(one)
    if answer.logged is not None and answer.logged.asked and one.decision.outcome.rule is None:
        wanted += r"|none-of-\d+"  # the authorizer has no rule name for earlier refusals
    if re.fullmatch(wanted, _who(answer)):
        return None
    return f"the gateway says that {_who(answer)} decided, the engine {wanted}"


def _name(one: Expected) -> str:
    outcome = one.decision.outcome
    if outcome.rule is None and outcome.stage in set(Unroutable):
        return f"{outcome.stage}|none-of-0"
    return expected_name(outcome)


def _difference_of_allowed(
    authority: Authority, ask: GatewayAsk, answer: GatewayAnswer, destination: GatewayDestination, one: Expected
) -> str | None:
    if destination.unsupported:
        is_refused = answer.server is None and (answer.status == 500 or _is_grpc(ask))
        return None if is_refused else f"the gateway did not refuse an unsupported destination: {answer.status}"
    redirect = next((each for each in destination.filters if isinstance(each, Redirect)), None)
    if redirect is not None:
        if answer.server is not None or (answer.status != redirect.status and not _is_grpc(ask)):
            return f"the gateway should redirect: {answer.status} {answer.server}"
        return _difference_of_location(ask, answer, destination, redirect)
    server = _server(authority, destination)
    if server is None:
        is_refused = answer.server is None and (answer.status == 503 or _is_grpc(ask))
        return None if is_refused else f"there is no server, and {answer.status}"
    if answer.server != server:
        return f"it should reach {server}, and reached {answer.server}: {answer.status} {_decision(answer)}"
    if answer.status not in (200, 202):
        return f"the server answers 200, and the client sees {answer.status} {answer.body!r}"
    return (
        _difference_of_view(ask, answer, destination)
        or _difference_of_rules(answer, one)
        or _difference_of_tools(authority, ask, answer, destination)
    )


def _difference_of_tools(
    authority: Authority, ask: GatewayAsk, answer: GatewayAnswer, destination: GatewayDestination
) -> str | None:
    """Return a difference between the listed tools and those that the caller may call if every authorizer allows."""
    if ask.messages != [("tools/list", None)] or not destination.filters_tools or not answer.body:
        return None  # a notification has no answer
    listed = json.loads(answer.body)
    result = (listed[0] if isinstance(listed, list) else listed)["result"]
    shown = [tool["name"] for tool in result["tools"]]
    wanted = [tool for tool in SHOWN if may_call(authority, ask, tool, destination)]
    return None if shown == wanted else f"the list of tools shows {shown}, and the caller may call {wanted}"


_USUAL_PORTS = {"http": 80, "https": 443}


def _difference_of_location(
    ask: GatewayAsk, answer: GatewayAnswer, destination: GatewayDestination, redirect: Redirect
) -> str | None:
    path = _rewritten(ask, destination)
    scheme = redirect.scheme or ("https" if ask.is_tls else "http")
    port = redirect.port or (_USUAL_PORTS[redirect.scheme] if redirect.scheme else ask.port)
    host = redirect.hostname or re.sub(r":[0-9]*$", "", ask.http.hosts)
    is_usual = redirect.hostname is not None and port == _USUAL_PORTS[scheme]
    wanted = f"{scheme}://{host}{'' if is_usual else f':{port}'}{path}"
    location = answer.header("location")
    return None if path is None or location == wanted else f"the gateway redirects to {location}, instead of {wanted}"


def _server(authority: Authority, destination: GatewayDestination) -> str | None:
    """Return the Service behind a backend, if it exists."""
    backend = destination.backend
    if backend is None:
        return None
    name = BACKENDS.get(backend.name) if backend.kind == "XBackend" else backend.name
    return name if f"{backend.namespace}/{name}" in authority.world.services else None


def _difference_of_view(ask: GatewayAsk, answer: GatewayAnswer, destination: GatewayDestination) -> str | None:
    """Return a wrong part of the request at the server, or None."""
    arrived = answer.arrived
    if arrived is None:
        return "nothing arrived"
    noted = [name for name, _ in arrived.headers if name.startswith("x-eastgate-") and name != "x-eastgate-decision"]
    if noted:
        return f"the server saw {noted}"
    session = [value for name, value in arrived.headers if name == "mcp-session-id"]
    if destination.reads_messages and destination.backend_key is not None and session not in ([], ["s-1"]):
        return f"the server saw the session {session}"
    path = _rewritten(ask, destination)
    if path is not None and arrived.target != path:
        return f"the server saw {arrived.target}, and should have seen {path}"
    hosts = [each.hostname for each in destination.filters if isinstance(each, UrlRewrite) and each.hostname]
    if hosts and arrived.hosts != (hosts[-1],):
        return f"the server saw the hosts {arrived.hosts}"
    return _difference_of_headers(ask, answer, destination)


def _difference_of_headers(ask: GatewayAsk, answer: GatewayAnswer, destination: GatewayDestination) -> str | None:
    arrived = [(name.lower(), value) for name, value in answer.arrived.headers] if answer.arrived is not None else []
    for each in destination.filters:
        if not isinstance(each, HeaderModifier) or each.type != HeaderModifier.REQUEST:
            continue
        for name, value in each.set:
            if [seen for key, seen in arrived if key == name.lower()] != [value]:
                return f"the server saw {arrived}, and {name} was to be set to {value}"
        for name, value in each.add:
            if value not in [seen for key, seen in arrived if key == name.lower()]:
                return f"the server saw {arrived}, and {name} was to be added"
        for name in each.remove:
            if any(key == name.lower() for key, _ in arrived):
                return f"the server saw {arrived}, and {name} was to be removed"
    return None


def _rewritten(ask: GatewayAsk, destination: GatewayDestination) -> str | None:
    """Return the target that the server should get, or None if its spelling may differ."""
    path, mark, rest = ask.http.target.partition("?")
    if re.fullmatch(r"(/[a-z]+)*/?", path) is None:
        return None
    for each in destination.filters:
        if isinstance(each, UrlRewrite | Redirect) and each.path is not None:
            new = each.path.value
            if each.path.prefix:
                stem = _prefix(destination)
                beyond = path[len(stem) :]
                new = f"{new.rstrip('/')}{beyond}" or "/"
            path = new
    return f"{path}{mark}{rest}"


def _prefix(destination: GatewayDestination) -> str:
    """Return the prefix in the only match of a rule."""
    assert destination.routed is not None
    [match] = destination.routed.route.rules[destination.routed.rule].matches
    return match.path.value.rstrip("/")
