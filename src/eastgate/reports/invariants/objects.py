"""Invariants as objects of a cluster. The shapes and the reader are those for files."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Mapping
from typing import Any

from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.records import dataclass
from eastgate.cluster.question import Question
from eastgate.ir import PolicyRef
from eastgate.reading.manifests import read_nodes_text
from eastgate.reading.manifests.shapes import Check, check
from eastgate.reports.invariants.future import ImaginedPod
from eastgate.reports.invariants.model import Statement, statement_of
from eastgate.reports.invariants.shapes import CLUSTER_KIND, KINDS, SERVED, check_namespace

# The result of a statement, with its counterexample.


class StatementStanding(enum.StrEnum):
    """The result of a statement."""

    HOLDS = "holds"
    BROKEN = "broken"
    NOT_PROVEN = "not proven"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A request that breaks a statement, as the engine decides it.

    `imagined` is its destination, if that does not exist yet. `caller` is the calling pod and `account` its account, if
    they do not exist. `labels` are those of the namespace of the caller, if that does not exist. `lines` show the rule
    that decides, and `field` is its path in the policy. A change of one of `policies` could fix the statement.
    """

    question: Question
    verdict: str
    reason: str
    policy: str | None
    rule: int | None
    file: str | None
    line: int | None
    lines: tuple[str, ...]
    policies: tuple[str, ...]
    imagined: ImaginedPod | None = None
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    field: str | None = None
    caller: ImaginedPod | None = None
    account: str | None = None

    @property
    def objects(self) -> list[dict[str, object]]:
        """Return the objects that the request needs and that do not exist, as objects of the Kubernetes API."""
        pods = (pod for pod in (self.imagined, self.caller) if pod is not None)
        return [manifest for pod in pods for manifest in pod.to_manifests()]


@dataclass(frozen=True, slots=True)
class StatementFinding:
    """The result of a statement: `why` it is not proven, or the counterexample that breaks it."""

    standing: StatementStanding
    why: str | None = None
    counterexample: Counterexample | None = None
    diagnostics: tuple[Diagnostic, ...] = ()


GROUP = "eastgate.dev"
VERSION = "v1alpha1"


class OnNotProven(enum.StrEnum):
    """The treatment of a change after which an Invariant is not proven."""

    WARN = "Warn"
    REFUSE = "Refuse"


class InvariantError(ValueError):
    """Error: an Invariant has errors. `ref` is its name, and `diagnostics` has all errors."""

    def __init__(self, ref: PolicyRef, diagnostics: list[Diagnostic]) -> None:
        super().__init__("; ".join(diagnostic.message for diagnostic in diagnostics))
        self.ref = ref
        self.diagnostics = diagnostics


@dataclass(frozen=True, slots=True)
class InvariantObject:
    """An Invariant or ClusterInvariant in one generation."""

    ref: PolicyRef
    statement: Statement
    on_not_proven: OnNotProven = OnNotProven.WARN
    generation: int | None = None


def is_invariant(document: Mapping[str, Any]) -> bool:
    """Return whether plain data is an Invariant of any version."""
    group, _, _ = str(document.get("apiVersion")).rpartition("/")
    return group == GROUP and document.get("kind") in KINDS


def read_invariant(document: Mapping[str, Any]) -> InvariantObject:
    """Read an Invariant from plain data. Raises InvariantError."""
    kind, metadata = str(document.get("kind")), document.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    namespace = str(named.get("namespace", "default")) if kind != CLUSTER_KIND else None
    ref = PolicyRef(kind, namespace, str(named.get("name", "")), GROUP)
    reporter = Reporter()
    roots = read_nodes_text(f"{kind}.json", json.dumps(document, indent=1))
    reporter.diagnostics.extend(roots.reporter)
    if not reporter.errors:
        (node,) = roots.nodes
        check(SERVED[kind], node, Check(reporter, None))
        check_namespace(node, Check(reporter, None))
    if reporter.errors:
        raise InvariantError(ref, reporter.errors)
    spec = node["spec"]
    unproven = spec.get("onNotProven")
    generation = named.get("generation")
    return InvariantObject(
        ref,
        statement_of(spec, {}, namespace),
        OnNotProven(unproven.text) if unproven is not None else OnNotProven.WARN,
        generation if isinstance(generation, int) else None,
    )
