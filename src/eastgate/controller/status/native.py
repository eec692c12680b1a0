"""The outcome of writing the policies of an installed mesh for one of ours, as status needs it."""

from __future__ import annotations

from eastgate.records import dataclass

__all__ = ["NativeOutcome"]


@dataclass(frozen=True, slots=True)
class NativeOutcome:
    """The native policies that stand for a policy in a `mesh`, such as Istio.

    `written` are their names, with their kinds; `losses` is what they cannot say, each as a sentence; `outside` are the
    workloads of the policy that are no part of that mesh. The policy is in force only where both are empty.
    """

    mesh: str
    written: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
