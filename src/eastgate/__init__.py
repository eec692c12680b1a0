"""Eastgate: one authorization brain for Kubernetes traffic.

import eastgate

authority = eastgate.load("examples/shop")
decision = authority.decide(eastgate.Question("sa:shop/web", "pod:shop/cart", port=8080))
print(decision.verdict, decision.policy)
print(eastgate.explain(decision))
"""

from importlib import import_module
from typing import TYPE_CHECKING

from eastgate._version import __version__ as __version__

# For type checkers; what runs reads `_NAMES`, and finds settings with the dialects that are registered.
if TYPE_CHECKING:
    from eastgate.authority.auditing import Audited as Audited
    from eastgate.authority.auditing import Would as Would
    from eastgate.authority.authority import Authority as Authority
    from eastgate.authority.authority import from_objects as from_objects
    from eastgate.authority.authority import from_text as from_text
    from eastgate.authority.authority import load as load
    from eastgate.authority.deciding import Prepared as Prepared
    from eastgate.authority.decisions import Decision as Decision
    from eastgate.authority.decisions import Verdict as Verdict
    from eastgate.authority.enforcement import PolicyEnforcement as PolicyEnforcement
    from eastgate.authority.questions import Arrival as Arrival
    from eastgate.authority.questions import Question as Question
    from eastgate.authority.questions import QuestionError as QuestionError
    from eastgate.authority.questions.ends import ANONYMOUS as ANONYMOUS
    from eastgate.authority.questions.ends import Address as Address
    from eastgate.authority.questions.ends import Anonymous as Anonymous
    from eastgate.authority.questions.ends import AuthConfig as AuthConfig
    from eastgate.authority.questions.ends import Backend as Backend
    from eastgate.authority.questions.ends import CertificateName as CertificateName
    from eastgate.authority.questions.ends import Gateway as Gateway
    from eastgate.authority.questions.ends import Host as Host
    from eastgate.authority.questions.ends import Pod as Pod
    from eastgate.authority.questions.ends import Route as Route
    from eastgate.authority.questions.ends import Service as Service
    from eastgate.authority.questions.ends import ServiceAccount as ServiceAccount
    from eastgate.authority.questions.ends import SpiffeId as SpiffeId
    from eastgate.authority.reading import Fault as Fault
    from eastgate.authority.reading import FaultReason as FaultReason
    from eastgate.authority.reading import ManifestError as ManifestError
    from eastgate.authority.reading import Manifests as Manifests
    from eastgate.authority.reading import read_manifests as read_manifests
    from eastgate.basics.diagnostics import Code as Code
    from eastgate.basics.diagnostics import Diagnostic as Diagnostic
    from eastgate.basics.diagnostics import Reporter as Reporter
    from eastgate.basics.diagnostics import Severity as Severity
    from eastgate.basics.diagnostics.spans import SourceText as SourceText
    from eastgate.basics.diagnostics.spans import Span as Span
    from eastgate.cluster import ObjectId as ObjectId
    from eastgate.cluster import World as World
    from eastgate.cluster import WorldObject as WorldObject
    from eastgate.cluster.points import Point as Point
    from eastgate.cluster.unread import Callers as Callers
    from eastgate.cluster.unread import Handling as Handling
    from eastgate.cluster.unread import Unconsidered as Unconsidered
    from eastgate.cluster.unread import Unread as Unread
    from eastgate.cluster.unread import UnreadMatch as UnreadMatch
    from eastgate.cluster.unread import UnreadObjects as UnreadObjects
    from eastgate.cluster.unread.model import EnforcementPlane as EnforcementPlane
    from eastgate.cluster.unread.model import QuestionEnd as QuestionEnd
    from eastgate.cluster.unread.model import TargetField as TargetField
    from eastgate.cluster.unread.model import UnreadEffect as UnreadEffect
    from eastgate.cluster.unread.model import UnreadKind as UnreadKind
    from eastgate.cluster.unread.model import UnreadTargets as UnreadTargets
    from eastgate.commands import compare as compare
    from eastgate.commands import convert_manifests as convert_manifests
    from eastgate.commands import describe as describe
    from eastgate.commands import list_objects as list_objects
    from eastgate.commands import make_crds as make_crds
    from eastgate.commands import reach_graph as reach_graph
    from eastgate.commands import run_lint as run_lint
    from eastgate.commands import run_tables as run_tables
    from eastgate.control.events import MeshEvent as MeshEvent
    from eastgate.control.gateways import GatewaySite as GatewaySite
    from eastgate.convert import Assumption as Assumption
    from eastgate.convert import Conversion as Conversion
    from eastgate.convert.model import Written as Written
    from eastgate.dialects import Policy as Policy
    from eastgate.dialects.accesspolicy.settings import *  # noqa: F403
    from eastgate.dialects.base import Condition as Condition
    from eastgate.dialects.gep3779.settings import *  # noqa: F403
    from eastgate.dialects.istio.settings import *  # noqa: F403
    from eastgate.dialects.kuadrant.settings import *  # noqa: F403
    from eastgate.dialects.linkerd.settings import *  # noqa: F403
    from eastgate.dialects.network.settings import *  # noqa: F403
    from eastgate.dialects.rejected import RejectedPolicy as RejectedPolicy
    from eastgate.engine.trace import LayerTrace as LayerTrace
    from eastgate.engine.trace import Missed as Missed
    from eastgate.engine.trace import NearMiss as NearMiss
    from eastgate.engine.trace import StageTrace as StageTrace
    from eastgate.engine.trace import Trace as Trace
    from eastgate.envoy.config.clusters import SocketAddress as SocketAddress
    from eastgate.ir import Layer as Layer
    from eastgate.ir import Origin as Origin
    from eastgate.ir import Outcome as Outcome
    from eastgate.ir import PolicyRef as PolicyRef
    from eastgate.ir import Refusal as Refusal
    from eastgate.ir import Reply as Reply
    from eastgate.ir import Request as Request
    from eastgate.ir import Rule as Rule
    from eastgate.ir import Ruling as Ruling
    from eastgate.local.mesh import LocalMesh as LocalMesh
    from eastgate.local.mesh import MeshOptions as MeshOptions
    from eastgate.reach.differences import DoubtReason as DoubtReason
    from eastgate.reading.jwt import DiscoveredKeys as DiscoveredKeys
    from eastgate.reading.jwt import Keys as Keys
    from eastgate.reading.jwt import KeySource as KeySource
    from eastgate.reading.jwt import KnownKeys as KnownKeys
    from eastgate.reading.manifests import Bounds as Bounds
    from eastgate.reading.manifests import Document as Document
    from eastgate.reports.describe import DescribedField as DescribedField
    from eastgate.reports.describe import Description as Description
    from eastgate.reports.diff.model import ChangedPorts as ChangedPorts
    from eastgate.reports.diff.model import ChangedRequests as ChangedRequests
    from eastgate.reports.diff.model import DiffReport as DiffReport
    from eastgate.reports.diff.model import FailOn as FailOn
    from eastgate.reports.diff.model import SideVerdict as SideVerdict
    from eastgate.reports.diff.model import Unproven as Unproven
    from eastgate.reports.diff.model import VerdictChange as VerdictChange
    from eastgate.reports.explain import explain as explain
    from eastgate.reports.get import Listed as Listed
    from eastgate.reports.get import Listing as Listing
    from eastgate.reports.graph import AllowedWay as AllowedWay
    from eastgate.reports.graph import Bundle as Bundle
    from eastgate.reports.graph import Edge as Edge
    from eastgate.reports.graph import Graph as Graph
    from eastgate.reports.graph import GraphNode as GraphNode
    from eastgate.reports.graph import GraphSelection as GraphSelection
    from eastgate.reports.graph import Grouping as Grouping
    from eastgate.reports.graph import NodeKind as NodeKind
    from eastgate.reports.graph import Pairs as Pairs
    from eastgate.reports.graph import ReachVerdict as ReachVerdict
    from eastgate.reports.invariants.future import ImaginedPod as ImaginedPod
    from eastgate.reports.invariants.proving import Counterexample as Counterexample
    from eastgate.reports.invariants.proving import StatementFinding as StatementFinding
    from eastgate.reports.invariants.proving import StatementStanding as StatementStanding
    from eastgate.reports.lint import Finding as Finding
    from eastgate.reports.tables import Case as Case
    from eastgate.reports.tables import Rejection as Rejection
    from eastgate.reports.tables import Result as Result
    from eastgate.reports.tables import Run as Run
    from eastgate.reports.tables import Table as Table
    from eastgate.reports.tables.coverage import Coverage as Coverage
    from eastgate.settings import DataPlane as DataPlane
    from eastgate.settings import McpDenials as McpDenials
    from eastgate.settings import MeshMode as MeshMode
    from eastgate.settings import Names as Names
    from eastgate.settings import OpenRequests as OpenRequests
    from eastgate.settings import Section as Section
    from eastgate.settings import Settings as Settings
    from eastgate.settings import SettingsError as SettingsError
    from eastgate.settings import Sidecars as Sidecars
    from eastgate.settings import Size as Size

    __all__: list[str]

_NAMES = {
    "reports.describe": ("DescribedField", "Description"),
    "reports.explain": ("explain",),
    "reports.diff.model": (
        "ChangedPorts",
        "ChangedRequests",
        "DiffReport",
        "FailOn",
        "SideVerdict",
        "Unproven",
        "VerdictChange",
    ),
    "reach.differences": ("DoubtReason",),
    "reports.get": ("Listed", "Listing"),
    "reports.graph": (
        "AllowedWay",
        "Bundle",
        "Edge",
        "Graph",
        "GraphNode",
        "GraphSelection",
        "Grouping",
        "NodeKind",
        "Pairs",
        "ReachVerdict",
    ),
    "commands": (
        "compare",
        "convert_manifests",
        "describe",
        "list_objects",
        "make_crds",
        "reach_graph",
        "run_lint",
        "run_tables",
    ),
    "authority.authority": ("Authority", "from_objects", "from_text", "load"),
    "authority.deciding": ("Prepared",),
    "convert": ("Assumption", "Conversion"),
    "convert.model": ("Written",),
    "authority.decisions": ("Decision", "Verdict"),
    "authority.auditing": ("Audited", "Would"),
    "authority.enforcement": ("PolicyEnforcement",),
    "basics.diagnostics": ("Code", "Diagnostic", "Reporter", "Severity"),
    "dialects": ("Policy", "Settings"),  # settings are read with those that dialects bring
    "dialects.base": ("Condition",),
    "dialects.rejected": ("RejectedPolicy",),
    "envoy.config.clusters": ("SocketAddress",),
    "engine.trace": ("LayerTrace", "Missed", "NearMiss", "StageTrace", "Trace"),
    "reports.lint": ("Finding",),
    "control.events": ("MeshEvent",),
    "control.gateways": ("GatewaySite",),
    "local.mesh": ("LocalMesh", "MeshOptions"),
    "basics.diagnostics.spans": ("SourceText", "Span"),
    "ir": ("Layer", "Origin", "Outcome", "PolicyRef", "Refusal", "Reply", "Request", "Rule", "Ruling"),
    "authority.questions": ("Arrival", "Question", "QuestionError"),
    "authority.questions.ends": (
        "ANONYMOUS",
        "Address",
        "Anonymous",
        "AuthConfig",
        "Backend",
        "CertificateName",
        "Gateway",
        "Host",
        "Pod",
        "Route",
        "Service",
        "ServiceAccount",
        "SpiffeId",
    ),
    "authority.reading": ("Fault", "FaultReason", "ManifestError", "Manifests", "read_manifests"),
    "settings": (
        "DataPlane",
        "McpDenials",
        "MeshMode",
        "Names",
        "OpenRequests",
        "Section",
        "SettingsError",
        "Sidecars",
        "Size",
    ),
    "reading.manifests": ("Bounds", "Document"),
    "reports.invariants.future": ("ImaginedPod",),
    "reports.invariants.proving": ("Counterexample", "StatementFinding", "StatementStanding"),
    "reports.tables": ("Case", "Rejection", "Result", "Run", "Table"),
    "reports.tables.coverage": ("Coverage",),
    "reading.jwt": ("DiscoveredKeys", "KeySource", "Keys", "KnownKeys"),
    "cluster.unread": ("Callers", "Handling", "UnreadMatch", "Unconsidered", "Unread", "UnreadObjects"),
    "cluster.unread.model": (
        "TargetField",
        "UnreadEffect",
        "EnforcementPlane",
        "UnreadTargets",
        "QuestionEnd",
        "UnreadKind",
    ),
    "cluster": ("ObjectId", "World", "WorldObject"),
    "cluster.points": ("Point",),
}
"""Where each name is defined. It is imported when it is first used: most commands need few of them."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would take any name for one that exists

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return __dir__()
        if name in _MODULES:
            value = getattr(import_module(f"eastgate.{_MODULES[name]}"), name)
        elif name[0].isupper() and name in (settings := _settings_of_dialects()):
            value = settings[name]
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def _settings_of_dialects() -> dict[str, type]:
    from eastgate.dialects import public_settings

    return public_settings()


def __dir__() -> list[str]:
    return sorted([*_MODULES, *_settings_of_dialects(), "__version__"])
