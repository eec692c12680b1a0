"""The input of all checks: the policies, the classes of workloads that they target, and the existing objects.

A class is examined once, however many workloads it has.
"""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from eastgate import dialects
from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.questions import Question
from eastgate.basics.diagnostics import Code
from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import GATEWAY_GROUP, Workload, World
from eastgate.cluster.points import NamedPoint
from eastgate.cluster.targets import BackendNamed, GatewayNamed, RouteNamed
from eastgate.dialects import Policy, dialect_of, registered
from eastgate.dialects.base import Dialect, Scene
from eastgate.dialects.linting import Check, Group, Linting, ReadingChoice, Statements, codes
from eastgate.engine.compiled import Program, compile_layers
from eastgate.ir import Attachment, PolicyRef, Rule, Stances
from eastgate.reading.manifests.custom import CustomResources
from eastgate.settings import Settings

__all__ = ["Group", "Labels", "Policy", "PolicyInventory", "collect_labels"]

Labels = dict[str, set[str]]  # the values of each key

_OF_KUBERNETES = ("default", "kube-node-lease", "kube-public", "kube-system")  # API servers create them
_DESTINATIONS = {GatewayNamed: "gateway", RouteNamed: "route", BackendNamed: "backend"}  # their kinds in questions


class PolicyInventory:
    """The policies of an authority, their points of enforcement, and the existing objects."""

    def __init__(self, authority: Authority, source: Sequence[str] = ()) -> None:
        """`source` are the arguments with which commands read the same manifests."""
        self.authority = authority
        self._source = source
        self.dialects_by_layer: dict[str, list[Dialect[Any]]] = {}  # of groups, by their first member
        self._labels: dict[str, Labels] = {}

    @property
    def world(self) -> World:
        return self.authority.world

    @property
    def custom(self) -> CustomResources:
        return self.authority.custom

    @property
    def settings(self) -> Settings:
        return self.authority.settings

    @cached_property
    def policies(self) -> Sequence[Policy]:
        """Return every policy, in the order of their names."""
        return self.authority.policies

    @cached_property
    def by_ref(self) -> dict[PolicyRef, Policy]:
        """Return every policy by its name."""
        return {policy.ref: policy for policy in self.policies}

    @cached_property
    def groups(self) -> list[Group]:
        """Return the classes of workloads that some layer protects, and the other points that policies target."""
        return [*self._workload_groups(), *self._named_groups()]

    @property
    def workload_groups(self) -> Iterator[Group]:
        """Return the classes of workloads."""
        return (group for group in self.groups if group.is_workload)

    def _workload_groups(self) -> Iterator[Group]:
        engine = programs_of(self.authority)
        engine.compile_all()
        members: dict[int, list[str]] = {}
        programs: dict[int, Program] = {}
        for key in sorted(self.world.workloads):
            program = engine.program(key)
            programs[id(program)] = program
            members.setdefault(id(program), []).append(key)
        for number, program in programs.items():
            if program.layers:
                keys = tuple(members[number])
                first = self.workload(keys[0])
                destination = f"pod:{first.namespace}/{first.name}"
                yield Group(program.layers, engine.attached(first.key), keys, destination)

    def _named_groups(self) -> Iterator[Group]:
        engine = programs_of(self.authority)
        points = {target for policy in self.policies for target in policy.targets if isinstance(target, NamedPoint)}
        for point in sorted(points, key=str):
            destination = f"{_DESTINATIONS[type(point)]}:{point.namespace}/{point.name}"
            yield Group(engine.program(point).layers, engine.attached(point), (str(point),), destination, point)

    def command(self, question: Question) -> str:
        """Return the command line that asks a question; `source` are its arguments for reading manifests."""
        return shlex.join(["eastgate", "check", *self._source, *question.arguments])

    # Programs

    def program(self, group: Group) -> Program:
        """Return the program of a group."""
        return programs_of(self.authority).program(group.point or group.first)

    def assembled(self, group: Group, attached: Sequence[Attachment[Policy]], settings: Settings) -> Program:
        """Return the program of a group under other settings or other policies."""
        stances = self.stances(group, attached, settings)
        return compile_layers(dialects.assemble(attached, settings, self.world, stances))

    def stances(self, group: Group, attached: Sequence[Attachment[Policy]], settings: Settings) -> Stances:
        """Return the inputs of the layers of a group other than its policies."""
        if not group.is_workload:
            return ()
        return dialects.stances(self.workload(group.first), attached, settings, self.world)

    # Documents

    def subjects_at(self, span: Span | None) -> tuple[str, ...]:
        """Return the policy or object in whose document a span is."""
        if span is None:
            return ()
        documents = self._documents.get(id(span.source), [])
        index = bisect_right(documents, (span.line, 1 << 60, "")) - 1
        return (documents[index][2],) if index >= 0 and span.line <= documents[index][1] else ()

    @cached_property
    def _documents(self) -> dict[int, list[tuple[int, int, str]]]:
        """Return the lines of the documents of each source, by its identity."""
        by_source: dict[int, list[tuple[int, int, str]]] = {}
        spans = [(policy.span, str(policy.ref)) for policy in self.policies]
        objects = self.world.objects.items()
        spans += [(declared.span, str(identity)) for identity, declared in objects if declared.span is not None]
        for span, key in spans:
            by_source.setdefault(id(span.source), []).append((span.line, span.end_line, key))
        return {source: sorted(documents) for source, documents in by_source.items()}

    # Existing objects

    @cached_property
    def workloads_of(self) -> dict[PolicyRef, list[str]]:
        """Return the workloads that a policy is attached to, by its name."""
        keys: dict[PolicyRef, list[str]] = {}
        for group in self.workload_groups:
            for ref in {attachment.policy.ref for attachment in group.attached}:
                keys.setdefault(ref, []).extend(group.members)
        return keys

    def workload(self, key: str) -> Workload:
        """Return a workload by its key."""
        return self.world.workloads[key]

    def policy_of(self, rule: Rule) -> Policy | None:
        """Return the policy of a rule."""
        return self.by_ref.get(rule.origin.policy) if rule.origin.policy is not None else None

    @cached_property
    def accounts(self) -> dict[str, set[str]]:
        """Return the service accounts that are declared or in use, by namespace."""
        names: dict[str, set[str]] = {}
        for account in self.world.service_accounts.values():
            names.setdefault(account.namespace, set()).add(account.name)
        for workload in self.world.workloads.values():
            if workload.is_pod:
                names.setdefault(workload.namespace, set()).add(workload.service_account)
        return names

    @cached_property
    def declaring_accounts(self) -> frozenset[str]:
        """Return the namespaces in which a service account is declared."""
        return frozenset(account.namespace for account in self.world.service_accounts.values())

    @cached_property
    def workloads_in(self) -> dict[str, list[Workload]]:
        """Return the pods of each namespace."""
        pods: dict[str, list[Workload]] = {}
        for workload in self.world.workloads.values():
            if workload.is_pod:
                pods.setdefault(workload.namespace, []).append(workload)
        return pods

    def labels_in(self, namespace: str) -> Labels:
        """Return the labels of a namespace's pods."""
        if namespace not in self._labels:
            self._labels[namespace] = collect_labels(pod.labels for pod in self.workloads_in.get(namespace, ()))
        return self._labels[namespace]

    @cached_property
    def names(self) -> dict[tuple[str, str, str], set[str]]:
        """Return the names of policies and routes by group, kind and namespace."""
        names: dict[tuple[str, str, str], set[str]] = {}
        for policy in self.policies:
            ref = policy.ref
            names.setdefault((ref.group, ref.kind, ref.namespace or ""), set()).add(ref.name)
        for route in self.world.routes.values():
            names.setdefault((GATEWAY_GROUP, route.kind, route.namespace), set()).add(route.name)
        return names

    @cached_property
    def namespaces(self) -> frozenset[str]:
        """Return every namespace that has an object, is declared, or exists in every cluster."""
        names = {*_OF_KUBERNETES, *self.world.namespaces_in_use()}
        names |= {identity.namespace for identity in self.world.objects if identity.namespace}
        names |= {policy.ref.namespace for policy in self.policies if policy.ref.namespace}
        return frozenset(names)


def collect_labels(labels: Iterable[Mapping[str, str]]) -> Labels:
    """Collect every key with its values."""
    collection: Labels = {}
    for mapping in labels:
        for key, value in mapping.items():
            collection.setdefault(key, set()).add(value)
    return collection


# Hooks of the dialects for lint, by policy and by layer. A policy without a dialect is an error.


def linting_of(policy: Policy) -> Linting[Any]:
    """Return the lint hooks of the dialect of a policy."""
    return dialect_of(policy).lint()


def statements_of(policy: Policy) -> Statements:
    """Return the statements of a policy."""
    return linting_of(policy).statements(policy)


def own_checks() -> Iterator[Check]:
    """Yield the checks of each dialect."""
    for dialect in registered().dialects:
        yield from dialect.lint().checks


def lint_codes() -> dict[str, Code]:
    """Return every code of lint by its number, including those of the dialects."""
    modules = [codes, *(module for dialect in registered().dialects for module in dialect.lint().codes)]
    return {value.id: value for module in modules for value in vars(module).values() if isinstance(value, Code)}


# At a point


def dialects_by_layer(group: Group, inventory: PolicyInventory) -> list[Dialect[Any]]:
    """Return the dialect of each layer of a group."""
    by_layer = inventory.dialects_by_layer.get(group.first)
    if by_layer is None:
        by_layer = inventory.dialects_by_layer[group.first] = _dialects_by_layer(group, inventory)
    return by_layer


def _dialects_by_layer(group: Group, inventory: PolicyInventory) -> list[Dialect[Any]]:
    stances = dict(inventory.stances(group, group.attached, inventory.settings))
    present = [dialect for dialect in registered().dialects if dialect.name in stances or _own(dialect, group.attached)]
    if len(present) == 1:
        return present * len(group.layers)
    scenes = {
        dialect.name: Scene(inventory.settings, inventory.world, stances.get(dialect.name)) for dialect in present
    }
    return [dialect for dialect in present for _ in dialect.assemble(group.attached, scenes[dialect.name])]


def policies_to_blame(group: Group, index: int, inventory: PolicyInventory) -> list[Policy]:
    """Return the policies in force that leave nothing allowed in a layer. Those that could allow come first."""
    blames, layer = dialects_by_layer(group, inventory)[index].lint().blames, group.layers[index]
    enforced = dict.fromkeys(attachment.policy for attachment in group.attached if not attachment.policy.audit)
    policies = [policy for policy in enforced if blames(policy, layer)]
    return sorted(policies, key=lambda policy: (not statements_of(policy).allows, str(policy.ref)))


def readings_at(group: Group) -> Iterator[tuple[ReadingChoice[Any], list[Policy]]]:
    """Yield the readings that matter at a group, each with the policies in force that it concerns."""
    for dialect in registered().dialects:
        own = _own(dialect, group.attached)
        enforced = [attachment for attachment in own if not attachment.policy.audit]
        for reading in dialect.lint().readings:
            if reading.shapes(group.layers, own):
                yield reading, [attachment.policy for attachment in enforced if reading.concerns(attachment)]


def _own(dialect: Dialect[Any], attached: Iterable[Attachment[Policy]]) -> list[Attachment[Policy]]:
    return [attachment for attachment in attached if isinstance(attachment.policy, dialect.model)]
