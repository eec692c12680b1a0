"""What keeps a whole policy from being converted."""

from __future__ import annotations

from eastgate.convert.model import Item, Job
from eastgate.diagnostics import Code
from eastgate.diagnostics.spans import Span

__all__ = ["Unsaid", "keep_unsaid"]


class Unsaid(Exception):  # noqa: N818 - says what it is
    """A part of a policy that the target cannot say, so that the policy stays as it is."""

    def __init__(self, code: Code, message: str, span: Span | None, way_out: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.span, self.way_out = code, message, span, way_out


def keep_unsaid(item: Item, span: Span, unsaid: Unsaid, job: Job) -> None:
    """Keep a policy, and report why."""
    message = f"{unsaid.message}: {item.policy.ref} is not converted"
    job.keep(item.document, unsaid.code, message, unsaid.span or span, help=unsaid.way_out)
