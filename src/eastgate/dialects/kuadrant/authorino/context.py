"""The context that all evaluators of one request share."""

from __future__ import annotations

from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.model import Identity, Scheme
from eastgate.dialects.kuadrant.authorino.secrecy import Secrets
from eastgate.dialects.kuadrant.rego import StepBudget


@dataclass(slots=True)
class Recognized:
    """The identity that recognized the caller, if one did."""

    identity: Identity | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of one scheme on one request."""

    scheme: Scheme
    request: RequestFacts
    services: Services
    document: AuthorizationJson
    secrets: Secrets
    rego_budget: StepBudget = field(default_factory=StepBudget)
    """The step budget for all Rego modules of the scheme together."""
    recognized: Recognized = field(default_factory=Recognized)
