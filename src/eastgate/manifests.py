"""Manifests without an authority, their errors, and the keys of token issuers."""

from eastgate.authority.authority import Touched
from eastgate.authority.changes import ChangedNames, Changes
from eastgate.authority.reading import Fault, FaultReason, Manifests, read_manifests
from eastgate.basics.diagnostics import Code, Diagnostic, Reporter, Severity
from eastgate.basics.diagnostics.spans import SourceText, Span
from eastgate.basics.public import publish
from eastgate.dialects import Policy
from eastgate.dialects.rejected import RejectedPolicy
from eastgate.reading.jwt import DiscoveredKeys, Keys, KeySource, KnownKeys
from eastgate.reading.manifests import Bounds, Document, Node
from eastgate.reading.manifests.custom import CustomResources
from eastgate.reading.repository import LeftOut

__all__ = [
    "Bounds",
    "ChangedNames",
    "Changes",
    "Code",
    "CustomResources",
    "Diagnostic",
    "DiscoveredKeys",
    "Document",
    "Fault",
    "FaultReason",
    "KeySource",
    "Keys",
    "KnownKeys",
    "LeftOut",
    "Manifests",
    "Node",
    "Policy",
    "RejectedPolicy",
    "Reporter",
    "Severity",
    "SourceText",
    "Span",
    "Touched",
    "read_manifests",
]

publish(globals())
