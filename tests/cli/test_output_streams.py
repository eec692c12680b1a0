"""Output arrives whole, also if the system takes only a part of each write."""

from __future__ import annotations

import io
import sys

import pytest

from eastgate.cli import main


class _Trickle(io.RawIOBase):
    """A stream that takes a few bytes at a time, as a terminal does when a signal interrupts a write."""

    def __init__(self) -> None:
        self.taken = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        some = bytes(memoryview(data)[:10])  # type: ignore[arg-type]
        self.taken += some
        return len(some)


def test_an_unbuffered_output_arrives_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = _Trickle()
    stream = io.TextIOWrapper(raw, "utf-8")  # type: ignore[type-var]
    for name in ("stdout", "__stdout__"):
        monkeypatch.setattr(sys, name, stream)
    main(["crds", "--kind", "Invariant"], standalone_mode=False)
    sys.stdout.flush()
    assert raw.taken.endswith(b"\n")
    assert len(raw.taken) > 1000
