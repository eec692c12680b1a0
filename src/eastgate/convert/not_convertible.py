"""The error for a policy that cannot be converted."""

from __future__ import annotations

import json

from eastgate import dialects
from eastgate.authority.reading import sort_documents
from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.diagnostics.spans import Span
from eastgate.convert.model import Item, Job, Manifest
from eastgate.reading.manifests import read_text
from eastgate.settings import Settings


class NotConvertible(Exception):  # noqa: N818 - says what it is
    """The target API cannot express a part of a policy, so the whole policy stays as it is."""

    def __init__(self, code: Code, message: str, span: Span | None, way_out: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.span, self.way_out = code, message, span, way_out


def keep_unconverted(item: Item, span: Span, unconverted: NotConvertible, job: Job) -> None:
    """Keep a policy unconverted, and report the reason."""
    message = f"{unconverted.message}: {item.policy.ref} is not converted"
    job.keep(item.document, unconverted.code, message, unconverted.span or span, help=unconverted.way_out)


def first_error(manifest: Manifest, settings: Settings) -> Diagnostic | None:
    """Return the first error that Eastgate reports for a manifest, or None."""
    reading = read_text("converted.json", json.dumps(manifest), positioned=dialects.reads)
    return next(iter(sort_documents(reading.documents, settings, reading.reporter).reporter.errors), None)
