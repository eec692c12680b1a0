"""A progress bar for long work: after one second, and on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_DELAY_SECONDS = 1.0


@contextmanager
def progress(action: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function to call with (done, total); None without a terminal.

    Work inside of other work with a bar has none.
    """
    if not sys.stderr.isatty() or _shown:
        yield None
        return
    bar = _Bar(action)
    _shown.append(bar)
    try:
        yield bar.show
    finally:
        _shown.pop()
        bar.close()


class _Bar:
    def __init__(self, action: str) -> None:
        self._action = action
        self._start = time.monotonic()
        self._close: Callable[[], None] | None = None
        self._update: Callable[[int, int], None] = lambda _done, _total: None

    def show(self, done: int, total: int) -> None:
        if self._close is None:
            if time.monotonic() - self._start < _DELAY_SECONDS:
                return
            self._open(total)
        self._update(done, total)

    def _open(self, total: int) -> None:
        # rich takes 50 ms to import, and short work shows no bar
        from rich.console import Console
        from rich.progress import Progress

        bars = Progress(console=Console(stderr=True), transient=True)
        task = bars.add_task(self._action, total=total)
        bars.start()
        self._close = bars.stop
        self._update = lambda done, total: bars.update(task, completed=done, total=total)

    def close(self) -> None:
        if self._close is not None:
            self._close()


_shown: list[_Bar] = []
