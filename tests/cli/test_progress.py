"""A progress bar: on a terminal only, and only after a while."""

from __future__ import annotations

import io
import sys

import pytest

from eastgate.cli import progress as module
from eastgate.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress("reading") as show:
        assert show is None


def test_work_that_is_soon_done_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("reading") as show:
        assert show is not None
        show(1, 2)
    assert terminal.getvalue() == ""


def test_long_work_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "_DELAY_SECONDS", 0.0)
    with progress("reading manifests") as show:
        assert show is not None
        show(1, 4)
        show(2, 4)
    assert "reading manifests" in terminal.getvalue()
