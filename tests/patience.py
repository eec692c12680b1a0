"""How long tests wait for what must come: long enough for a busy machine, as a limit that is too short asserts a time.

It is not for waits that show that nothing happens; those are short, and a busy machine only makes them show less.
"""

from __future__ import annotations

__all__ = ["PATIENCE"]

PATIENCE = 120.0
"""Seconds; longer than the mesh itself waits for its proxies."""
