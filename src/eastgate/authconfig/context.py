"""What every evaluator of one request shares."""

from __future__ import annotations

from dataclasses import dataclass, field

from eastgate.authconfig.document import Document
from eastgate.authconfig.facts import RequestFacts, Services
from eastgate.authconfig.model import Scheme
from eastgate.authconfig.secrecy import Secrets

__all__ = ["Evaluation", "Patience"]


@dataclass(slots=True)
class Patience:
    """How long the Rego of one scheme has taken on one request, all of its modules together."""

    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One request on its way through one scheme."""

    scheme: Scheme
    request: RequestFacts
    services: Services
    document: Document
    secrets: Secrets
    patience: Patience = field(default_factory=Patience)
