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
    from eastgate.analysis.describing import Description, Field
    from eastgate.analysis.explain import explain
    from eastgate.analysis.listing import Listed, Listing
    from eastgate.api import convert_manifests, describe, list_objects, make_crds, run_lint, run_tables
    from eastgate.authority import Authority, Prepared, load
    from eastgate.convert import Assumption, Conversion
    from eastgate.convert.model import Written
    from eastgate.decisions import Decision, Verdict
    from eastgate.diagnostics import Code, Diagnostic, Reporter, Severity
    from eastgate.dialects import Policy
    from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
    from eastgate.dialects.base import Condition
    from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings, ServiceTarget
    from eastgate.dialects.kuadrant.settings import KuadrantSettings
    from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
    from eastgate.engine.trace import LayerTrace, Missed, NearMiss, StageTrace, Trace
    from eastgate.lint import Finding
    from eastgate.mesh.events import MeshEvent
    from eastgate.mesh.mesh import LocalMesh, MeshOptions
    from eastgate.places import SourceText, Span
    from eastgate.policy import Layer, Origin, Outcome, PolicyRef, Refusal, Reply, Request, Rule, Ruling
    from eastgate.questions import Arrival, Question, QuestionError
    from eastgate.questions.ends import (
        ANONYMOUS,
        Address,
        Anonymous,
        Backend,
        CertificateName,
        Gateway,
        Pod,
        Route,
        Service,
        ServiceAccount,
        SpiffeId,
    )
    from eastgate.reading import Fault, FaultReason, ManifestError, Manifests, read_manifests
    from eastgate.settings import DataPlane, MeshMode, OpenRequests, Section, Settings, SettingsError
    from eastgate.sources import Bounds, Document
    from eastgate.tables import Case, Rejection, Result, Run, Table
    from eastgate.tables.coverage import Coverage
    from eastgate.tokens import DiscoveredKeys, Keys, KeySource, KnownKeys
    from eastgate.unconsidered import Callers, Handling, Met, Unconsidered, Unread, UnreadObjects
    from eastgate.unconsidered.model import By, Influence, Plane, Reach, Side, UnreadKind
    from eastgate.world import ObjectId, World, WorldObject
    from eastgate.world.points import Point

__all__ = [
    "ANONYMOUS",
    "AccessSettings",
    "Address",
    "Anonymous",
    "Arrival",
    "Assumption",
    "Authority",
    "Backend",
    "Bounds",
    "By",
    "Callers",
    "Case",
    "CertificateName",
    "Code",
    "Condition",
    "Conversion",
    "Coverage",
    "DataPlane",
    "Decision",
    "DenyOnly",
    "Description",
    "Diagnostic",
    "DiscoveredKeys",
    "Document",
    "Fault",
    "FaultReason",
    "Field",
    "Finding",
    "Gateway",
    "GepSettings",
    "Handling",
    "InboundPolicy",
    "Influence",
    "KeySource",
    "Keys",
    "KnownKeys",
    "KuadrantSettings",
    "Layer",
    "LayerTrace",
    "LinkerdSettings",
    "Listed",
    "Listing",
    "LocalMesh",
    "ManifestError",
    "Manifests",
    "MeshEvent",
    "MeshMode",
    "MeshOptions",
    "Met",
    "Missed",
    "NearMiss",
    "ObjectId",
    "OpenRequests",
    "Origin",
    "Outcome",
    "Plane",
    "Pod",
    "Point",
    "Policy",
    "PolicyRef",
    "Prepared",
    "Question",
    "QuestionError",
    "Reach",
    "Refusal",
    "Rejection",
    "Reply",
    "Reporter",
    "Request",
    "Result",
    "Route",
    "Rule",
    "Ruling",
    "Run",
    "Section",
    "Service",
    "ServiceAccount",
    "ServiceTarget",
    "Settings",
    "SettingsError",
    "Severity",
    "Side",
    "SourceText",
    "Span",
    "SpiffeId",
    "StageTrace",
    "Table",
    "Trace",
    "Unconsidered",
    "UnlistedCaller",
    "Unread",
    "UnreadKind",
    "UnreadObjects",
    "Verdict",
    "World",
    "WorldObject",
    "Written",
    "__version__",
    "convert_manifests",
    "describe",
    "explain",
    "list_objects",
    "load",
    "make_crds",
    "read_manifests",
    "run_lint",
    "run_tables",
]

_NAMES = {
    "analysis.describing": ("Description", "Field"),
    "analysis.explain": ("explain",),
    "analysis.listing": ("Listed", "Listing"),
    "api": ("convert_manifests", "describe", "list_objects", "make_crds", "run_lint", "run_tables"),
    "authority": ("Authority", "Prepared", "load"),
    "convert": ("Assumption", "Conversion"),
    "convert.model": ("Written",),
    "decisions": ("Decision", "Verdict"),
    "diagnostics": ("Code", "Diagnostic", "Reporter", "Severity"),
    "dialects": ("Policy", "Settings"),  # settings are read with those that dialects bring
    "dialects.accesspolicy.settings": ("AccessSettings", "UnlistedCaller"),
    "dialects.base": ("Condition",),
    "dialects.gep3779.settings": ("DenyOnly", "GepSettings", "ServiceTarget"),
    "dialects.kuadrant.settings": ("KuadrantSettings",),
    "dialects.linkerd.settings": ("InboundPolicy", "LinkerdSettings"),
    "engine.trace": ("LayerTrace", "Missed", "NearMiss", "StageTrace", "Trace"),
    "lint": ("Finding",),
    "mesh.events": ("MeshEvent",),
    "mesh.mesh": ("LocalMesh", "MeshOptions"),
    "places": ("SourceText", "Span"),
    "policy": ("Layer", "Origin", "Outcome", "PolicyRef", "Refusal", "Reply", "Request", "Rule", "Ruling"),
    "questions": ("Arrival", "Question", "QuestionError"),
    "questions.ends": (
        "ANONYMOUS",
        "Address",
        "Anonymous",
        "Backend",
        "CertificateName",
        "Gateway",
        "Pod",
        "Route",
        "Service",
        "ServiceAccount",
        "SpiffeId",
    ),
    "reading": ("Fault", "FaultReason", "ManifestError", "Manifests", "read_manifests"),
    "settings": ("DataPlane", "MeshMode", "OpenRequests", "Section", "SettingsError"),
    "sources": ("Bounds", "Document"),
    "tables": ("Case", "Rejection", "Result", "Run", "Table"),
    "tables.coverage": ("Coverage",),
    "tokens": ("DiscoveredKeys", "KeySource", "Keys", "KnownKeys"),
    "unconsidered": ("Callers", "Handling", "Met", "Unconsidered", "Unread", "UnreadObjects"),
    "unconsidered.model": ("By", "Influence", "Plane", "Reach", "Side", "UnreadKind"),
    "world": ("ObjectId", "World", "WorldObject"),
    "world.points": ("Point",),
}
"""Where each name is defined. It is imported when it is first used: most commands need few of them."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"eastgate.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
