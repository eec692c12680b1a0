"""Eastgate: one authorization brain for Kubernetes traffic.

import eastgate

authority = eastgate.load("examples/shop")
decision = authority.decide(eastgate.Question("sa:shop/web", "pod:shop/cart", port=8080))
print(decision.verdict, decision.policy)
print(eastgate.explain(decision))
"""

from eastgate._version import __version__
from eastgate.analysis.explain import explain
from eastgate.authority import Authority, ManifestError, Manifests, load, read_manifests
from eastgate.decisions import Decision
from eastgate.diagnostics import Diagnostic
from eastgate.questions import Question, QuestionError
from eastgate.settings import Settings, SettingsError
from eastgate.unconsidered import Handling
from eastgate.world import World

__all__ = [
    "Authority",
    "Decision",
    "Diagnostic",
    "Handling",
    "ManifestError",
    "Manifests",
    "Question",
    "QuestionError",
    "Settings",
    "SettingsError",
    "World",
    "__version__",
    "explain",
    "load",
    "read_manifests",
]
