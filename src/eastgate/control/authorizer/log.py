"""Writes decisions and what else happens, one JSON object in a line."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import BinaryIO

from eastgate.control.authorizer.checks import ProxyAnswer


class Logged(StrEnum):
    """Which decisions are written."""

    ALL = "all"
    DENIED = "denied"
    NONE = "none"


class LazyRecord(Mapping[str, object]):
    """The line of a decision, made once somebody reads it: most decisions are logged by nobody."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Mapping[str, object]]) -> None:
        self._make = make
        self._made: Mapping[str, object] | None = None

    def __getitem__(self, name: str) -> object:
        return self._record()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._record())

    def __len__(self) -> int:
        return len(self._record())

    def _record(self) -> Mapping[str, object]:
        if self._made is None:
            self._made = self._make()
        return self._made


class DecisionLog:
    """Writes lines to a stream, whole ones, from several threads. A stream that is gone ends nothing."""

    def __init__(self, stream: BinaryIO, logged: Logged = Logged.ALL) -> None:
        self._stream = stream
        self._logged = logged
        self._lock = threading.Lock()

    def decided(self, answer: ProxyAnswer, protocol: str, seconds: float) -> None:
        """Write a decision."""
        if self._logged is Logged.ALL or (self._logged is Logged.DENIED and not answer.allowed):
            record = {**answer.record, "protocol": protocol, "milliseconds": round(seconds * 1000, 3)}
            self.record(record)

    def record(self, record: Mapping[str, object]) -> None:
        """Write a line, without what is not known."""
        self._write({name: value for name, value in record.items() if value is not None and value != {}})

    def event(self, name: str, **more: object) -> None:
        """Write something else that happened."""
        self._write({"event": name, "time": datetime.now(UTC).isoformat(timespec="milliseconds"), **more})

    def _write(self, record: Mapping[str, object]) -> None:
        line = json.dumps(record, default=str).encode() + b"\n"
        try:
            with self._lock:
                self._stream.write(line)
                self._stream.flush()
        except (OSError, ValueError):
            pass
