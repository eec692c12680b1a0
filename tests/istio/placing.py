"""The placement of a table's questions: listeners of an Envoy, and the points that each question passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address

from tests.istio.client import Call
from tests.istio.judging import Answer
from tests.istio.listeners import Config
from tests.istio.questions import Unanswerable

_SIX = 0xFD99 << 112


@dataclass
class Steps:
    """The enforcement points of a question: points to call, and points with a known decision."""

    calls: list[Call] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)


@dataclass
class Placed:
    """The listeners of a table, by address and port, and the steps of its questions, by number."""

    listeners: dict[tuple[str, int], Config] = field(default_factory=dict)
    steps: dict[int, Steps] = field(default_factory=dict)


def twin(address: str, caller: str) -> str:
    """Return an address for a pod in the address family of the caller's."""
    if ":" in caller and ":" not in address:
        return str(ip_address(_SIX | int(ip_address(address))))
    if ":" in address and ":" not in caller:
        raise Unanswerable("an IPv4 caller of a pod that has IPv6 only")
    return address
