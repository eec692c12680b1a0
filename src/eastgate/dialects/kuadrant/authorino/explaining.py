"""Describes an evaluation: its steps and the document, without secrets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson
from eastgate.dialects.kuadrant.authorino.secrecy import Secrets
from eastgate.ir import RulingStep, Seen


def mask_steps(steps: Iterable[RulingStep], secrets: Secrets) -> tuple[RulingStep, ...]:
    """Return the steps without secrets."""
    return tuple(
        replace(
            step, reason=secrets.mask_text(step.reason), seen=tuple(_mask_seen(seen, secrets) for seen in step.seen)
        )
        for step in steps
    )


def _mask_seen(seen: Seen, secrets: Secrets) -> Seen:
    return replace(
        seen,
        expression=secrets.mask_text(seen.expression),
        saw=None if seen.saw is None else secrets.mask_text(seen.saw),
        reason=secrets.mask_text(seen.reason),
    )


def mask_document(document: AuthorizationJson, secrets: Secrets) -> dict[str, object]:
    """Return the document without secrets, and without what is unknown."""
    shown = secrets.mask_explanation(document.masked)
    if not isinstance(shown, dict):
        return {}
    for path in document.unknown:
        parent: object = shown
        for key in path[:-1]:
            parent = parent.get(key) if isinstance(parent, dict) else None
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
    return shown
