"""The time limit for an event that must happen. It is long enough for a busy machine: a short limit asserts a time.

Do not use it to show that nothing happens. Such waits are short, and show less on a busy machine.
"""

from __future__ import annotations

__all__ = ["PATIENCE"]

PATIENCE = 120.0
"""Seconds; longer than the mesh itself waits for its proxies."""
