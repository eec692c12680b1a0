"""The limits of a manifest. Larger input is an attack or an accident, and gets a diagnostic."""

from __future__ import annotations

MAX_DEPTH = 100
"""The depth of mappings and lists, counted through aliases too, so that recursion over trees is safe."""

MAX_ALIASED_NODES = 100_000
"""The values that all aliases of one document expand to."""

MAX_BYTES = 512 * 1024 * 1024
"""The size of one text."""

MAX_DIRECTIVES = 16
"""`%` lines before one document (libyaml compares each with all the others)."""

MAX_FINDINGS = 100
"""The findings in one document. After that, the rest of it is not read."""
