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
    from eastgate.api.authority import Authority, load
    from eastgate.api.deciding import Prepared
    from eastgate.api.decisions import Decision, Verdict
    from eastgate.api.questions import Arrival, Question, QuestionError
    from eastgate.api.questions.ends import (
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
    from eastgate.api.reading import Fault, FaultReason, ManifestError, Manifests, read_manifests
    from eastgate.cluster import ObjectId, World, WorldObject
    from eastgate.cluster.points import Point
    from eastgate.commands import convert_manifests, describe, list_objects, make_crds, run_lint, run_tables
    from eastgate.convert import Assumption, Conversion
    from eastgate.convert.model import Written
    from eastgate.diagnostics import Code, Diagnostic, Reporter, Severity
    from eastgate.diagnostics.spans import SourceText, Span
    from eastgate.dialects import Policy
    from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
    from eastgate.dialects.base import Condition
    from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings, ServiceTarget
    from eastgate.dialects.kuadrant.settings import KuadrantSettings
    from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
    from eastgate.engine.trace import LayerTrace, Missed, NearMiss, StageTrace, Trace
    from eastgate.envoy.config.clusters import SocketAddress
    from eastgate.ir import Layer, Origin, Outcome, PolicyRef, Refusal, Reply, Request, Rule, Ruling
    from eastgate.languages.jwt import DiscoveredKeys, Keys, KeySource, KnownKeys
    from eastgate.manifests import Bounds, Document
    from eastgate.mesh.events import MeshEvent
    from eastgate.mesh.mesh import LocalMesh, MeshOptions
    from eastgate.reports.describe import Description, Field
    from eastgate.reports.explain import explain
    from eastgate.reports.get import Listed, Listing
    from eastgate.reports.lint import Finding
    from eastgate.reports.tables import Case, Rejection, Result, Run, Table
    from eastgate.reports.tables.coverage import Coverage
    from eastgate.settings import DataPlane, MeshMode, OpenRequests, Section, Settings, SettingsError
    from eastgate.unread import Callers, Handling, Met, Unconsidered, Unread, UnreadObjects
    from eastgate.unread.model import By, Influence, Plane, Reach, Side, UnreadKind

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
    "SocketAddress",
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
    "reports.describe": ("Description", "Field"),
    "reports.explain": ("explain",),
    "reports.get": ("Listed", "Listing"),
    "commands": ("convert_manifests", "describe", "list_objects", "make_crds", "run_lint", "run_tables"),
    "api.authority": ("Authority", "load"),
    "api.deciding": ("Prepared",),
    "convert": ("Assumption", "Conversion"),
    "convert.model": ("Written",),
    "api.decisions": ("Decision", "Verdict"),
    "diagnostics": ("Code", "Diagnostic", "Reporter", "Severity"),
    "dialects": ("Policy", "Settings"),  # settings are read with those that dialects bring
    "dialects.accesspolicy.settings": ("AccessSettings", "UnlistedCaller"),
    "dialects.base": ("Condition",),
    "dialects.gep3779.settings": ("DenyOnly", "GepSettings", "ServiceTarget"),
    "dialects.kuadrant.settings": ("KuadrantSettings",),
    "dialects.linkerd.settings": ("InboundPolicy", "LinkerdSettings"),
    "envoy.config.clusters": ("SocketAddress",),
    "engine.trace": ("LayerTrace", "Missed", "NearMiss", "StageTrace", "Trace"),
    "reports.lint": ("Finding",),
    "mesh.events": ("MeshEvent",),
    "mesh.mesh": ("LocalMesh", "MeshOptions"),
    "diagnostics.spans": ("SourceText", "Span"),
    "ir": ("Layer", "Origin", "Outcome", "PolicyRef", "Refusal", "Reply", "Request", "Rule", "Ruling"),
    "api.questions": ("Arrival", "Question", "QuestionError"),
    "api.questions.ends": (
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
    "api.reading": ("Fault", "FaultReason", "ManifestError", "Manifests", "read_manifests"),
    "settings": ("DataPlane", "MeshMode", "OpenRequests", "Section", "SettingsError"),
    "manifests": ("Bounds", "Document"),
    "reports.tables": ("Case", "Rejection", "Result", "Run", "Table"),
    "reports.tables.coverage": ("Coverage",),
    "languages.jwt": ("DiscoveredKeys", "KeySource", "Keys", "KnownKeys"),
    "unread": ("Callers", "Handling", "Met", "Unconsidered", "Unread", "UnreadObjects"),
    "unread.model": ("By", "Influence", "Plane", "Reach", "Side", "UnreadKind"),
    "cluster": ("ObjectId", "World", "WorldObject"),
    "cluster.points": ("Point",),
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
