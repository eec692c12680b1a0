"""The comparison of proxy and engine. One table lists the intended differences. All others are findings."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from eastgate.authority.decisions import Decision
from eastgate.engine import reference
from eastgate.ir import Outcome
from tests.differential.asking import Ask
from tests.differential.bench import Answer

__all__ = ["KNOWN", "Known", "difference", "expected_name", "known", "outcomes"]


@dataclass(frozen=True, slots=True)
class Known:
    """An intended difference: the proxy refuses a request that the engine may allow. Never the other way round."""

    name: str
    reason: str
    applies: Callable[[Ask, Answer], bool]


def _who(answer: Answer) -> str:
    return answer.who or ""


KNOWN = (
    Known(
        "refused-by-the-proxy",
        "Envoy answers 4xx to a malformed request (a fragment, %00, an odd method or host), or has no route for it "
        "(OPTIONS *): no policy is asked",
        lambda _, answer: answer.refused_by_proxy,
    ),
    Known(
        "not-http-to-the-inspector",
        "a request line with bytes beyond ASCII, or with a method that Envoy does not know, is not HTTP to Envoy's "
        "inspector: such bytes come in only where all of HTTP would",
        lambda ask, answer: ask.http is not None and answer.request is None and _is_odd(ask),
    ),
    Known(
        "unclear-values",
        "more than eight values of one name where a policy has a pattern, and values that Envoy joins, are refused",
        lambda ask, answer: _who(answer) == "unclear-values" and _is_unclear(ask),
    ),
    Known(
        "cannot-be-enforced",
        "a port is closed where its policies ask for something that Envoy has no exact test for",
        lambda _, answer: _who(answer) == "cannot-be-enforced",
    ),
)


def _is_unclear(ask: Ask) -> bool:
    """Return whether a proxy may refuse the request. In the corpus, only many values and joined values are unclear."""
    http = ask.http
    if http is None:
        return False
    names = [name.lower() for name, _ in http.headers]
    many = http.target.count("&") >= 8 or any(names.count(name) > 8 for name in names)
    return many or names.count("user-agent") > 1


def _is_odd(ask: Ask) -> bool:
    http = ask.http
    if http is None:
        return False
    return not ask.is_plain or http.method not in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")


def known(ask: Ask, answer: Answer) -> Known | None:
    return next((one for one in KNOWN if one.applies(ask, answer)), None)


def difference(ask: Ask, decision: Decision, answer: Answer) -> str | None:
    """Return the difference in words, or None."""
    if answer.allowed and not decision.allowed:
        return f"the proxy allows ({answer.who}), but the engine denies ({decision.reason})"
    if answer.allowed and answer.status == 0:
        return f"the proxy allows it ({answer.who}), and its answer was lost"
    if known(ask, answer) is not None:
        return None
    if answer.allowed != decision.allowed:
        return f"the proxy denies ({answer.status} {answer.who}), but the engine allows ({decision.reason})"
    if _is_unknown(ask, answer):
        return None  # for bytes that are not HTTP, the engine names one of many reasons
    expected = outcomes(decision)
    statuses = {one.status or answer.status for one in expected}  # 0 is a closed connection; this one was open
    if answer.request is not None and not decision.allowed and answer.status not in statuses:
        return f"the proxy answers {answer.status} ({answer.who}), the engine {decision.status} ({decision.reason})"
    wanted = [expected_name(one) for one in expected]
    if not any(re.fullmatch(one, answer.who or "") for one in wanted):
        return f"the proxy says that {answer.who} decided, the engine {wanted[0]}"
    return _audit_difference(decision, answer)


def _audit_difference(decision: Decision, answer: Answer) -> str | None:
    """Return a difference in the results of policies in audit mode, or None.

    A port with HTTP policies only in audit mode is not read as HTTP, and refuses no malformed request.
    """
    observation = answer.request or answer.connection
    would = decision.would_be
    for name in observation.audit if observation is not None and answer.allowed else ():
        mark, _, who = name.partition(":")
        if mark.isdigit() and who != "none" and (mark == "200") is not would.allowed and not would.is_unasked:
            return f"the proxy says that it would be {name}, the engine {would}"
    return None


def outcomes(decision: Decision) -> list[Outcome]:
    """Return the engine's outcome, and its outcome if the layers without HTTP were asked first.

    At a port that is opaque to Linkerd, the proxy asks Linkerd's layer when a connection opens, before the APPLICATION
    level. The engine asks in the other order. The verdict is the same: all layers must allow.
    """
    last = sorted(decision.layers, key=lambda layer: layer.name == "workload/application")
    return [decision.outcome, reference.decide(last, decision.arrival.request)]


def _is_unknown(ask: Ask, answer: Answer) -> bool:
    """Return whether the question was about bytes on an HTTP port, or the proxy read no HTTP."""
    return ask.http is None or (answer.connection is not None and answer.connection.level == "handshake")


_UNASKED = {None: "encoded-slash", "bad-host": "bad-host", "encoded-path": "encoded-path"}


def expected_name(outcome: Outcome) -> str:
    """Return a pattern for the proxy's name of the deciding rule, written independently from the documentation."""
    rule = outcome.rule
    if rule is None:
        if outcome.allowed:
            return "open"
        return _UNASKED.get(outcome.stage, r"none-of-\d+")
    policy = rule.origin.policy
    if policy is None:
        return re.escape("default/" + re.sub(r"[^A-Za-z0-9._/-]+", "-", rule.origin.label).strip("-"))
    kind = f"{policy.kind}.{policy.group}"
    return re.escape("/".join(part for part in (kind, policy.namespace, policy.name) if part)) + f"#{rule.origin.index}"
