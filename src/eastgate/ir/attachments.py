"""A policy where it applies."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeAlias, TypeVar

from eastgate.basics.records import dataclass

Stances: TypeAlias = tuple[tuple[str, Hashable], ...]
"""What layers depend on beside the policies, by the name of the dialect that says so; most say nothing."""

P_co = TypeVar("P_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Attachment(Generic[P_co]):
    """A policy at a point; `service` is the Service through which it got to a workload, if it targets one.

    `host` is that of the point, where policies are found by host. `perhaps`: it is unknown whether the policy is
    about the point.
    """

    policy: P_co
    service: str | None = None
    host: str | None = None
    perhaps: bool = False
