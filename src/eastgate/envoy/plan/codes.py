"""Policies that Envoy cannot enforce. Their targets are closed, because a left-out rule would be a hole."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.basics.diagnostics import Code
from eastgate.ir import PolicyRef

ASKS_AN_AUTHORIZER = Code(
    "EG8001",
    "a policy asks an authorizer",
    "A sidecar enforces only policies that it can decide itself; a policy that asks an external authorizer closes its "
    "target there.",
)
NOT_AN_ATTRIBUTE = Code(
    "EG8002",
    "a sidecar does not know an attribute of the policy",
    "The policy depends on an attribute that a sidecar does not know; its target is closed.",
)
NOT_A_TEST = Code(
    "EG8003",
    "a sidecar cannot make a test of the policy",
    "The test has no equivalent in Envoy that decides the same for every request; its target is closed.",
)

TOO_LARGE = Code(
    "EG8004",
    "policies are too large for a proxy",
    "The configuration for these policies is larger or deeper than a proxy accepts; their target is closed.",
)


class Inexpressible(Exception):  # noqa: N818 - the name is a predicate
    """Raised for policies that Envoy cannot enforce exactly."""

    def __init__(self, code: Code, message: str, policies: Iterable[PolicyRef] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.policies = tuple(dict.fromkeys(policies))
