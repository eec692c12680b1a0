"""Reasons of decisions, in one sentence each."""

from __future__ import annotations

from eastgate.authority.decisions import Decision
from eastgate.authority.enforcement import unenforced_text
from eastgate.cluster.points import NetworkEnd
from eastgate.dialects import HOSTS
from eastgate.ir import REFUSED_HOST, REFUSED_SPELLING, Unroutable, atoms
from eastgate.ir.paths import is_sensitive

DEAD_ENDS: dict[str | None, str] = {
    Unroutable.NO_ROUTE: "no route of the gateway matches",
    Unroutable.NO_INBOUND_ROUTE: "no route of the Server matches",
    Unroutable.NO_BACKEND: "the route leads to no backend",
    Unroutable.REFERENCE_NOT_GRANTED: (
        "the route refers to a backend of another namespace, and no ReferenceGrant there allows it"
    ),
    Unroutable.BACKEND_NOT_DECLARED: "the route refers to a backend that no manifest declares",
    Unroutable.UNSUPPORTED_FILTER: "the route has a filter that Eastgate does not know, and that may refuse requests",
    Unroutable.NO_HOST_POLICY: f"no {HOSTS.kind} is for the host",
}

UNASKED: dict[str | None, str] = {
    None: "its path has an encoded slash, backslash or NUL, and a policy looks at paths",
    REFUSED_HOST: "its host is invalid (no host with a port up to 65535), and the port is read as HTTP",
    REFUSED_SPELLING: "its path is not in its canonical spelling, and an expression or a pattern looks at it",
}


def reason_of(decision: Decision) -> str:
    outcome, where = decision.outcome, decision.arrival.where
    if outcome.rule is not None:
        does = "allows" if outcome.allowed else "denies"
        ruling = decision.ruling
        end = _end_beside(decision)
        text = f"{decision.origin} {does} it" + (f" at pod {end.workload}" if end is not None else "")
        text += f": {ruling.text}" if ruling is not None else ""
    elif outcome.allowed:
        text = f"nothing denies it at {where}" if decision.layers else f"no policy targets {where}"
    elif _is_exhausted(decision):
        text = "too many attributes are unknown to prove that every possible request is allowed"
    elif outcome.stage in DEAD_ENDS:
        text = DEAD_ENDS[outcome.stage]
    elif outcome.is_unasked:
        text = UNASKED[outcome.stage] + _looking_at_spelling(decision)
    else:
        level = f" ({outcome.layer})" if len(decision.layers) > 1 else ""
        text = f"no rule allows it at {where}{level}"
    unenforced = unenforced_text(decision.enforcement)
    if unenforced is not None:
        text = unenforced if outcome.allowed and outcome.rule is None else f"{text}; {unenforced}"
    if decision.unknown:
        text += f"; unknown: {', '.join(map(str, decision.unknown))}"
    if decision.denied and len(decision.ways) > 1:
        text += f" (denied at {len(decision.denied)} of {len(decision.ways)}: {', '.join(decision.denied)})"
    return text


def _end_beside(decision: Decision) -> NetworkEnd | None:
    """Return the end of the deciding policy, if it also selects a pod to which it cannot apply."""
    origin, end = decision.origin, decision.deciding_point
    if origin is None or not isinstance(end, NetworkEnd) or end.labels is not None:
        return None
    beside = {ref for each in decision.enforcement if not each.applies for ref in each.policies}
    return end if origin.policy in beside else None


def _looking_at_spelling(decision: Decision) -> str:
    """Return the first rule that looks at the path's spelling, if the path is refused for its spelling."""
    if decision.outcome.stage is not REFUSED_SPELLING:
        return ""
    layers = [layer for layer in decision.layers if layer.name == decision.outcome.layer]
    rules = (rule for layer in layers for chain in layer.chains for rule in chain.rules(observed=False))
    looking = (rule for rule in rules if any(map(is_sensitive, atoms(rule.when))))
    return next((f": {rule.origin}" for rule in looking), "")


def _is_exhausted(decision: Decision) -> bool:
    """Return whether the search for a denied completion was given up."""
    layers = () if decision.is_fully_known else decision.trace().layers
    return bool(layers) and layers[-1].exhausted
