"""Eastgate: one authorization brain for Kubernetes traffic.

import eastgate

authority = eastgate.load("examples/shop")
decision = authority.decide(eastgate.Question("sa:shop/web", "pod:shop/cart", port=8080))
print(decision.verdict, decision.policy)
print(eastgate.explain(decision))
"""

from importlib import import_module
from typing import TYPE_CHECKING

from eastgate._version import __version__

if TYPE_CHECKING:
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

_MODULES = {
    "Authority": "authority",
    "Decision": "decisions",
    "Diagnostic": "diagnostics",
    "Handling": "unconsidered",
    "ManifestError": "authority",
    "Manifests": "authority",
    "Question": "questions",
    "QuestionError": "questions",
    "Settings": "settings",
    "SettingsError": "settings",
    "World": "world",
    "explain": "analysis.explain",
    "load": "authority",
    "read_manifests": "authority",
}
"""Where each name is defined. It is imported when it is first used: most commands need few of them."""


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"eastgate.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
