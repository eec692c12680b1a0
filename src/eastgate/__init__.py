"""Eastgate: one authorization brain for Kubernetes traffic.

import eastgate

authority = eastgate.load("examples/shop/manifests")
decision = authority.check("sa:shop/web", "pod:shop/cart", port=8080)
print(decision.verdict, decision.policy)
print(authority.explain(decision))

The types of return values are in `eastgate.graph`, `eastgate.diff`, `eastgate.lint` and so on.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from eastgate._version import __version__ as __version__

# For type checkers. At run time, `_NAMES` is used.
if TYPE_CHECKING:
    from eastgate.authority.decisions import Decision as Decision
    from eastgate.authority.decisions import Verdict as Verdict
    from eastgate.authority.questions import Question as Question
    from eastgate.authority.questions import QuestionError as QuestionError
    from eastgate.authority.reading import ManifestError as ManifestError
    from eastgate.cluster.ends import ANONYMOUS as ANONYMOUS
    from eastgate.cluster.ends import Address as Address
    from eastgate.cluster.ends import AuthConfig as AuthConfig
    from eastgate.cluster.ends import Backend as Backend
    from eastgate.cluster.ends import CertificateName as CertificateName
    from eastgate.cluster.ends import Destination as Destination
    from eastgate.cluster.ends import Gateway as Gateway
    from eastgate.cluster.ends import Host as Host
    from eastgate.cluster.ends import Pod as Pod
    from eastgate.cluster.ends import Route as Route
    from eastgate.cluster.ends import Service as Service
    from eastgate.cluster.ends import ServiceAccount as ServiceAccount
    from eastgate.cluster.ends import Source as Source
    from eastgate.cluster.ends import SpiffeId as SpiffeId
    from eastgate.cluster.unread import Handling as Handling
    from eastgate.reports.public import Authority as Authority
    from eastgate.reports.public import connect as connect
    from eastgate.reports.public import crds as crds
    from eastgate.reports.public import from_objects as from_objects
    from eastgate.reports.public import from_text as from_text
    from eastgate.reports.public import load as load
    from eastgate.reports.public import test as test
    from eastgate.settings import Settings as Settings
    from eastgate.settings import SettingsError as SettingsError

    __all__: list[str]

_NAMES = {
    "authority.decisions": ("Decision", "Verdict"),
    "authority.questions": ("Question", "QuestionError"),
    "cluster.ends": (
        "ANONYMOUS",
        "Address",
        "AuthConfig",
        "Backend",
        "CertificateName",
        "Destination",
        "Gateway",
        "Host",
        "Pod",
        "Route",
        "Service",
        "ServiceAccount",
        "Source",
        "SpiffeId",
    ),
    "authority.reading": ("ManifestError",),
    "cluster.unread": ("Handling",),
    "dialects": ("Settings",),  # with the settings of dialects
    "reports.public": ("Authority", "connect", "crds", "from_objects", "from_text", "load", "test"),
    "settings": ("SettingsError",),
}
"""The module that defines each name. It is imported on first use: most commands need few of them."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return __dir__()
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import_module(f"{__name__}.{_MODULES[name]}")
        _take_loaded()
        return globals()[name]


def _take_loaded() -> None:
    """Take the names whose modules are loaded, so that errors have their public names in tracebacks."""
    import sys

    for module, names in _NAMES.items():
        loaded = sys.modules.get(f"{__name__}.{module}")
        for name in names if loaded is not None else ():
            value = globals()[name] = getattr(loaded, name)
            if hasattr(value, "__qualname__"):
                value.__module__ = __name__


def __dir__() -> list[str]:
    return sorted([*_MODULES, "__version__"])
