"""Decisions without their authority: the content of a pickle or a copy, for another process and after every change."""

from __future__ import annotations

import pickle
from dataclasses import replace
from io import BytesIO
from types import FunctionType
from typing import Any

from eastgate.authority.decisions import Decision

_DERIVED_PROPERTIES = (
    "arrival",
    "conditions",
    "deciding_point",
    "enforcement",
    "looks_at_protocol",
    "points",
    "ways",
    "would_be",
)
"""The properties that a decision derives from its authority's programs."""
_STORED = ("_audit", "_outcome", "_trace", "allowed", "layers", "question", "unconsidered")
_PICKLED_PACKAGES = ("builtins", "eastgate")


class KeptDecision(Decision):
    """A decision that was made in another process, or before a change."""

    __slots__ = ("_pickled", *_DERIVED_PROPERTIES)

    def __init__(self, pickled: bytes) -> None:
        self._pickled = pickled
        for name, value in pickle.loads(pickled).items():  # noqa: S301 - part of a pickle that is loaded
            setattr(self, name, value)

    def __reduce__(self) -> tuple[type[Decision], tuple[bytes]]:
        return KeptDecision, (self._pickled,)


class NotKept:
    """A placeholder for a function or a key in a kept decision. Everything that needs it has been computed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: object) -> bool:
        raise RuntimeError(f"a decision that was pickled or copied cannot be evaluated again: {self.name} is not in it")


def keep(decision: Decision) -> bytes:
    """Return a pickle of all properties of a decision, including those computed on first access."""
    for find_out in (lambda: decision.audit, lambda: decision.outcome, decision.trace):
        find_out()
    parts = {name: getattr(decision, name) for name in (*_STORED, *_DERIVED_PROPERTIES)}
    arrival = decision.arrival
    parts["arrival"] = arrival._replace(entry=replace(arrival.entry, condition=None, guard=None))
    file = BytesIO()
    _Pickler(file).dump(parts)
    return file.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Leave out values that cannot be pickled: functions made by policies, and objects of libraries."""
        if isinstance(value, FunctionType):
            return (NotKept, (value.__qualname__,)) if "<locals>" in value.__qualname__ else NotImplemented
        if not isinstance(value, type) and type(value).__module__.partition(".")[0] not in _PICKLED_PACKAGES:
            try:
                value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
            except TypeError:
                return NotKept, (type(value).__qualname__,)
        return NotImplemented
