"""Policies that Envoy cannot enforce. Their targets are closed, because a left-out rule would be a hole."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.basics.diagnostics import Code
from eastgate.ir import PolicyRef

ASKS_AN_AUTHORIZER = Code(
    "EG8001",
    "a policy asks an authorizer",
    "A sidecar enforces what it can decide itself; a policy that asks an external authorizer closes its target there.",
)
NOT_AN_ATTRIBUTE = Code(
    "EG8002",
    "a sidecar cannot see what the policy looks at",
    "The policy depends on something that is not known where a sidecar stands; its target is closed.",
)
NOT_A_TEST = Code(
    "EG8003",
    "a sidecar cannot test what the policy asks",
    "The test has no equivalent in Envoy that decides the same for every request; its target is closed.",
)

TOO_LARGE = Code(
    "EG8004",
    "policies are too large for a proxy",
    "What a proxy would have to be sent for these policies is larger or deeper than it takes; their target is closed.",
)


class Inexpressible(Exception):  # noqa: N818 - what it is called says what it is
    """Raised for policies that Envoy cannot enforce exactly."""

    def __init__(self, code: Code, message: str, policies: Iterable[PolicyRef] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.policies = tuple(dict.fromkeys(policies))
