"""Suspends garbage collection while many long-lived objects are created, and returns free memory to the system."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final


@contextmanager
def no_collection() -> Iterator[None]:
    """Suspend cyclic garbage collection: for work that makes many objects and no cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_MAX_UNCOLLECTED: Final = 200_000  # objects created, less objects freed


def collect_if_needed() -> None:
    """Collect garbage if there may be much of it. Use it in long work while collection is suspended."""
    if gc.get_count()[0] > _MAX_UNCOLLECTED:
        gc.collect()


def give_memory_back() -> None:
    """Collect garbage, and return free memory to the system. Only glibc needs this: it keeps free memory otherwise."""
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
