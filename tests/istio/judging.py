"""Reads the decision, and the policy that decided, from a reply and from Envoy's access log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.istio.client import Reply
from tests.istio.observing import Matches, matches_in
from tests.istio.ztunnel import Verdict

_CONVERTED = ("converted_peer_authentication_", "istio_converted_static_strict")


@dataclass(frozen=True)
class Answer:
    """The answer of real Istio.

    `verdict` is None if Istio cannot answer. `by` are the policies that a row may name: Kind/namespace/name, or only a
    kind if Envoy does not name the policy, or none.
    """

    verdict: str | None
    status: int
    by: tuple[str, ...]
    detail: str

    def is_by(self, policy: str) -> bool:
        """Return whether a policy is one of those that decided."""
        kind, _, rest = policy.partition("/")
        name = f"{kind.partition('.')[0]}/{rest}" if rest else policy
        return name in self.by or (bool(rest) and kind.partition(".")[0] in self.by)


def unanswerable(why: str) -> Answer:
    return Answer(None, 0, (), why)


def unprotected() -> Answer:
    """Return the answer for a pod without a proxy: no policy decides."""
    return Answer("allow", 200, ("none",), "there is no proxy")


def judge(reply: Reply, records: Sequence[dict[str, Any]]) -> Answer:
    """Return the answer of an Envoy."""
    metadata: dict[str, Any] = {}
    texts = [reply.detail]
    for record in records:
        metadata |= (record["http"] or {}) | (record["network"] or {})
        texts += [text for key in ("details", "termination") if (text := record[key])]
        if len(texts) == 1 and record["transport"]:  # the TLS inspector also records plaintext
            texts.append(record["transport"])
    matches = matches_in(metadata)
    detail = "; ".join(texts)
    if reply.reached:
        return Answer("allow", 200, matches.allowing or matches.custom or ("none",), detail)
    return Answer("deny", reply.status, _denying(detail, matches), detail)


def judge_ztunnel(verdict: Verdict) -> Answer:
    """Return the answer of a ztunnel, which closes connections."""
    by = tuple(_policy_name(policy) for policy in verdict.policies) or ("none",)
    if verdict.allowed:
        return Answer("allow", 200, by, "ztunnel")
    return Answer("deny", 0, by, "ztunnel")


def together(answers: Sequence[Answer]) -> Answer:
    """Return the answer of several points that must all allow: the first denial, or the answer of the last one."""
    denial = next((answer for answer in answers if answer.verdict == "deny"), None)
    if denial is not None:
        return denial
    named = [answer for answer in answers if answer.by != ("none",)]
    return named[-1] if named else answers[-1]


def _denying(detail: str, matches: Matches) -> tuple[str, ...]:
    if "rbac_access_denied_matched_policy[none]" in detail:
        return ("none",)
    if "rbac_access_denied_matched_policy" in detail:
        return matches.denying
    if "ext_authz" in detail:
        return matches.custom
    if "jwt_authn" in detail:
        return ("RequestAuthentication",)
    if "filter_chain_not_found" in detail:
        return ("PeerAuthentication",)
    return ("none",)


def _policy_name(key: str) -> str:
    name = key.partition("/")[2]
    return "PeerAuthentication" if name.startswith(_CONVERTED) else f"AuthorizationPolicy/{key}"
