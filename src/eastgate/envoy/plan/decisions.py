"""Verdicts with the names that a proxy logs: the ends of its decision trees.

Envoy reads no configuration that is nested beyond a fixed depth; the trees are as deep as a request has stages to pass.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from eastgate.ir import Origin, Outcome, PolicyRef
from eastgate.records import dataclass
from eastgate.symbolic.trees import Tree

__all__ = [
    "ASK",
    "NOT_ENFORCED",
    "NO_AUDIT",
    "UNOPPOSED_NAME",
    "Node",
    "ProxyVerdict",
    "name_of",
    "policy_name",
    "verdict_of",
]

UNOPPOSED_NAME = "open"  # what a proxy logs where an outcome is UNOPPOSED: no rule decided
_ASK_NAME = "ask"  # what a proxy logs where it leaves the decision to the authorizer
NOT_ENFORCED = "cannot-be-enforced"  # the port is closed, because its policies are not in force


@dataclass(frozen=True, slots=True)
class ProxyVerdict:
    """The end of a decision tree. `who` names the rule that decided, or says that none did.

    `would_ask`: the rule is in audit mode, and only an authorizer could tell what it would have done.
    """

    allowed: bool
    status: int
    who: str
    would_ask: bool = False

    @property
    def name(self) -> str:
        """Return the name that the proxy logs and `why` reads."""
        return f"{_ASK_NAME if self.would_ask else self.status}:{self.who}"

    @property
    def is_unopposed(self) -> bool:
        """Return whether it allows because no rule applied."""
        return self.allowed and self.who == UNOPPOSED_NAME

    @property
    def is_final(self) -> bool:
        """Return whether nothing that comes later is looked at: it denies, or the authorizer decides the whole."""
        return not self.allowed or self.who == _ASK_NAME


ASK = ProxyVerdict(True, 200, _ASK_NAME)  # the proxy does not know: the authorizer decides
NO_AUDIT = ProxyVerdict(True, 200, "none")


Node: TypeAlias = Tree[ProxyVerdict]


def name_of(origin: Origin | None, policies: int) -> str:
    """Return the name of a rule in one word; without a rule, of how many policies none decided."""
    if origin is None:
        return f"none-of-{policies}"
    if origin.policy is None:
        return "default/" + re.sub(r"[^A-Za-z0-9._/-]+", "-", origin.label).strip("-")
    return f"{policy_name(origin.policy)}#{origin.index}"


@lru_cache(maxsize=65536)
def policy_name(ref: PolicyRef) -> str:
    """Return kind.group/namespace/name: kinds of several APIs have the same name."""
    return str(replace(ref, kind=f"{ref.kind}.{ref.group}" if ref.group else ref.kind))


def verdict_of(outcome: Outcome, policies: int) -> ProxyVerdict:
    """Return the verdict for an outcome; `policies`: how many were asked where none decided."""
    origin = outcome.rule.origin if outcome.rule is not None else None
    if outcome.allowed:
        return ProxyVerdict(True, 200, UNOPPOSED_NAME if origin is None else name_of(origin, 0))
    return ProxyVerdict(False, outcome.status, name_of(origin, policies))
