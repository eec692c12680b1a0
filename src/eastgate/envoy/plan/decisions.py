"""Verdicts with the names that a proxy logs: the ends of its decision trees.

Envoy limits the depth of its configuration; the trees are as deep as a request has stages to pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.ir import Origin, Outcome, PolicyRef
from eastgate.ir.symbolic.trees import Tree

UNOPPOSED_NAME = "open"  # the logged name if no rule decided (UNOPPOSED)
_ASK_NAME = "ask"  # the logged name if the decision is left to the authorizer
_DIRECTIONS = ("ingress", "egress")
_ISOLATION = regex(r"(ingress|egress)/none-of-(\d+)/(\S+)")
NOBODY = "none"  # the logged name of a caller without an identity
NO_NAME = "-"  # the same, for a client without a certificate where none is required
NOT_ENFORCED = "cannot-be-enforced"  # the port is closed, because its policies are not in force


@dataclass(frozen=True, slots=True)
class ProxyVerdict:
    """The end of a decision tree. `who` names the rule that decided, or a default.

    `would` is for rules in audit mode: `ask` if only an authorizer could decide, and `match` if a rule only logs that
    it matches.
    """

    allowed: bool
    status: int
    who: str
    would: str = ""

    @property
    def name(self) -> str:
        """Return the name that the proxy logs and `why` reads."""
        return f"{self.would or self.status}:{self.who}"

    @property
    def is_unopposed(self) -> bool:
        """Return whether it allows because no rule applied."""
        return self.allowed and self.who == UNOPPOSED_NAME

    @property
    def is_final(self) -> bool:
        """Return whether later layers are skipped: it denies, or the authorizer decides everything."""
        return not self.allowed or _ASK_NAME in (self.who, self.would)


ASK = ProxyVerdict(True, 200, _ASK_NAME)  # the proxy cannot decide: the authorizer does
NO_AUDIT = ProxyVerdict(True, 200, "none")
WOULD_ASK, WOULD_MATCH = _ASK_NAME, "match"
CLOSED_BY = "closed-by/"  # the logged name of a would-be denial by an audited policy that closes


Node: TypeAlias = Tree[ProxyVerdict]


def name_of(origin: Origin | None, policies: int) -> str:
    """Return the name of a rule in one word; without a rule, the number of policies without a decision."""
    if origin is None:
        return f"none-of-{policies}"
    if origin.policy is None:
        return "default/" + re.sub(r"[^A-Za-z0-9._/-]+", "-", origin.label).strip("-")
    return f"{policy_name(origin.policy)}#{origin.index}"


def isolation_name(direction: str, policies: Sequence[PolicyRef]) -> str:
    """Return the name of a refusal by network policies without an allowing rule: one of them, and their number."""
    return f"{direction}/none-of-{len(policies)}/{policy_name(policies[0])}"


def isolated_by(who: str) -> tuple[str, int, str] | None:
    """Return the direction, the number of policies, and the first policy, from a name of `isolation_name`."""
    named = _ISOLATION.fullmatch(who)
    return (named[1], int(named[2]), named[3]) if named is not None else None


def end_of(who: str) -> tuple[str | None, str]:
    """Return the direction in which a rule of a network policy decided, and the rule's name; None for other rules."""
    direction, separator, rule = who.partition("/")
    return (direction, rule) if separator and direction in _DIRECTIONS else (None, who)


@lru_cache(maxsize=65536)
def policy_name(ref: PolicyRef) -> str:
    """Return kind.group/namespace/name: kinds of several APIs have the same name."""
    return str(replace(ref, kind=f"{ref.kind}.{ref.group}" if ref.group else ref.kind))


def ref_of(name: str) -> PolicyRef:
    """Return the policy for a name of `policy_name`."""
    kind, *home, last = name.split("/")
    kind, _, group = kind.partition(".")
    return PolicyRef(kind, home[0] if home else None, last, group)


def closers_name(closing: Iterable[Origin]) -> str:
    """Return the name of a would-be denial without a rule: the audited policies that close."""
    return CLOSED_BY + "+".join(policy_name(each.policy) for each in closing if each.policy is not None)


def verdict_of(outcome: Outcome, policies: int) -> ProxyVerdict:
    """Return the verdict for an outcome; `policies`: their number, if none decided."""
    origin = outcome.rule.origin if outcome.rule is not None else None
    if outcome.allowed:
        return ProxyVerdict(True, 200, UNOPPOSED_NAME if origin is None else name_of(origin, 0))
    return ProxyVerdict(False, outcome.status, name_of(origin, policies))
