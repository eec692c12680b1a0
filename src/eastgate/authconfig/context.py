"""The context that all evaluators of one request share."""

from __future__ import annotations

from dataclasses import dataclass, field

from eastgate.authconfig.document import Document
from eastgate.authconfig.facts import RequestFacts, Services
from eastgate.authconfig.model import Scheme
from eastgate.authconfig.secrecy import Secrets
from eastgate.rego import Budget

__all__ = ["Evaluation"]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One request on its way through one scheme."""

    scheme: Scheme
    request: RequestFacts
    services: Services
    document: Document
    secrets: Secrets
    patience: Budget = field(default_factory=Budget)
    """The steps that all Rego of the scheme may take together."""
