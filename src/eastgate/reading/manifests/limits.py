"""The limits of a manifest. Beyond these it is an attack or an accident, and gets a diagnostic."""

from __future__ import annotations

MAX_DEPTH = 100
"""Mappings and lists inside each other; counted through aliases too, so that trees may be walked by recursion."""

MAX_ALIASED_NODES = 100_000
"""Values that the aliases of one document stand for, all together."""

MAX_BYTES = 512 * 1024 * 1024
"""The size of one text."""

MAX_DIRECTIVES = 16
"""`%` lines before one document (libyaml compares each with all the others)."""

MAX_FINDINGS = 100
"""Findings in one document, after which the rest of it is left unread."""
