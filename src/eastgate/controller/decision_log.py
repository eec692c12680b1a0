"""The decision log: a sample of decisions, as JSON lines that `eastgate why` explains.

The lines have the form of the authorizer's log, with the same omissions: no query, no header, no body, no token.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO

from eastgate.basics.records import dataclass
from eastgate.control.authorizer.checks import ProxyAnswer
from eastgate.control.authorizer.log import DecisionLog


@dataclass(frozen=True, slots=True)
class DecisionSampling:
    """The shares of logged decisions, between 0 and 1: of those that allow, and of those that deny."""

    allowed: float = 0.01
    denied: float = 1.0

    def share(self, *, allowed: bool) -> float:
        """Return the share of decisions with this verdict."""
        return self.allowed if allowed else self.denied


class SampledDecisions:
    """A log of sampled decisions. Several threads may call it."""

    def __init__(
        self, stream: BinaryIO, sampling: DecisionSampling, chance: Callable[[], float] = random.random
    ) -> None:
        self._log = DecisionLog(stream)
        self._sampling = sampling
        self._chance = chance

    def decided(self, answer: ProxyAnswer, seconds: float) -> None:
        """Write a decision of the authorizer, if it is in the sample."""
        if self._chance() < self._sampling.share(allowed=answer.allowed):
            self._log.decided(answer, "grpc", seconds)

    def observed(self, record: Mapping[str, object], *, allowed: bool) -> None:
        """Write a decision of a proxy, if it is in the sample. The line is that of the proxy."""
        if self._chance() < self._sampling.share(allowed=allowed):
            self._log.record(record)


def open_decision_log(target: str) -> AbstractContextManager[BinaryIO]:
    """Open a file to append to, which only its owner can read, or standard output for `-`. Raises OSError."""
    if target == "-":
        return nullcontext(sys.stdout.buffer)
    return os.fdopen(os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab")
