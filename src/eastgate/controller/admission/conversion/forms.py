"""The spec of an AuthorizationPolicy in another version: an equivalent form, or else a form that denies more.

`convert` writes an equivalent form. If there is none, the form depends only on the policy, and must be correct together
with any other policies:

| the policy | its form in v1alpha1 | why a smaller form is wrong |
|---|---|---|
| several targets that one selector can express | that selector, the same rules | it is equivalent |
| ALLOW on several others | a selector that covers all, no rules | rules would allow more beside the ALLOW of others |
| DENY on several others | a selector that covers all, everything is denied | its presence ends a baseline that denies |
| APPLICATION | its targets, everything is denied | v1alpha1 has no such level; without the form it would be open |
| a policy with errors | every pod of the namespace, everything is denied | the requests that it denies are unknown |

A namespaced policy cannot override the Admin tier: a request that a ClusterAuthorizationPolicy of that tier allows at
NETWORK stays allowed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.diagnostics.spans import SourceText
from eastgate.basics.records import dataclass
from eastgate.cluster import Operator, Requirement, Selector, World
from eastgate.convert import gep_writing
from eastgate.convert.gep_reading import Gep, PodsTarget, TargetedService, read
from eastgate.convert.model import Item, Job
from eastgate.convert.selectors import write_selector
from eastgate.dialects import gep3779, registered
from eastgate.reading.manifests import Document, Node, Plain
from eastgate.settings import MeshMode, Settings

# One target in place of several: it selects the pods of all of them, or more if one selector cannot express that.


_MAX_VALUES = 64  # of a requirement, as in the definitions

EVERY_POD: dict[str, Plain] = {"group": "", "kind": "Pod", "selector": {}}


@dataclass(frozen=True, slots=True)
class TargetCover:
    """A target that covers others; an `exact` one covers nothing else."""

    target: dict[str, Plain]
    exact: bool


def cover(targets: Sequence[PodsTarget | TargetedService]) -> TargetCover:
    """Return one target for all of these. The pods of Services are unknown here, so several Services need every pod."""
    services = {target.name for target in targets if isinstance(target, TargetedService)}
    selectors = list(dict.fromkeys(_requirements(target) for target in targets if isinstance(target, PodsTarget)))
    if not services:
        return _cover_pods(selectors)
    if len(services) == 1 and not selectors:
        return TargetCover({"group": "", "kind": "Service", "name": next(iter(services))}, exact=True)
    return TargetCover(dict(EVERY_POD), exact=frozenset() in selectors)


def _requirements(target: PodsTarget) -> frozenset[Requirement]:
    labels = (Requirement(key, Operator.IN, frozenset({value})) for key, value in target.selector.match_labels)
    return target.selector.expressions | frozenset(labels)


def _cover_pods(selectors: Sequence[frozenset[Requirement]]) -> TargetCover:
    """Return a target for all selectors. Every pod of ANY selector meets the requirements that ALL selectors share."""
    shared = frozenset.intersection(*selectors)
    if shared in selectors:
        return TargetCover(_target(shared), exact=True)
    rests = [selector - shared for selector in selectors]
    merged = [requirement for key in _keys_of_all(rests) if (requirement := _either(rests, key)) is not None]
    exact = len(merged) == 1 and all(len(rest) == 1 for rest in rests)
    return TargetCover(_target(shared.union(merged)), exact)


def _keys_of_all(rests: Sequence[frozenset[Requirement]]) -> list[str]:
    keys = [{each.key for each in rest if each.operator is Operator.IN} for rest in rests]
    return sorted(set.intersection(*keys))


def _either(rests: Sequence[frozenset[Requirement]], key: str) -> Requirement | None:
    """Return a requirement for ANY of the values of a label that these want, or None if there are too many."""
    wanted = [each.values for rest in rests for each in rest if each.key == key and each.operator is Operator.IN]
    values = frozenset[str]().union(*wanted)
    return Requirement(key, Operator.IN, values) if len(values) <= _MAX_VALUES else None


def _target(requirements: frozenset[Requirement]) -> dict[str, Plain]:
    return {"group": "", "kind": "Pod", "selector": write_selector(Selector(frozenset(), requirements))}


# Nodes of plain data, without positions.


_SOURCE = SourceText("converted", "")


def node_of(value: Any) -> Node:
    """Return a node of JSON data, with no position."""
    match value:
        case Mapping():
            return _node({key: node_of(entry) for key, entry in value.items()}, {key: _node(key) for key in value})
        case list():
            return _node([node_of(entry) for entry in value])
        case _:
            return _node(value)


def _node(value: Any, keys: dict[str, Node] | None = None) -> Node:
    return Node(value, _SOURCE, 1, 1, 1, 1, keys)


_LOG = logging.getLogger(__name__)

KIND = (gep3779.GROUP, gep_writing.AUTHORIZATION_POLICY)
_OLD, _NEW = "v1alpha1", "v1alpha2"
VERSIONS = (_OLD, _NEW)
STORED = _NEW
_RULES = {_OLD: "tcpRules", _NEW: "rules"}
_WRITERS = {_OLD: gep_writing.v1alpha1, _NEW: gep_writing.v1alpha2}
# Some targets fit the level in one kind of mesh only. The conversion accepts any kind.
_SETTINGS = tuple(Settings.from_mapping({"meshMode": str(mode)}) for mode in MeshMode)


class Narrowing(Enum):
    """The reason for which a form denies more than the policy."""

    SEVERAL_TARGETS = auto()
    APPLICATION = auto()
    UNREADABLE = auto()


@dataclass(frozen=True, slots=True)
class Form:
    """A spec in another version; `narrowing` is why it denies more, or None for an equivalent form."""

    spec: dict[str, Any]
    narrowing: Narrowing | None = None


def form_in(version: str, spec: object, namespace: str) -> Form:
    """Return the form of a spec in another version, for a policy in a namespace. Never raises an error."""
    try:
        return _form_in(version, spec, namespace)
    except Exception:  # one stored object must not make every list fail
        fields = {"namespace": namespace}
        _LOG.exception("a policy of the namespace %s could not be converted", namespace, extra=fields)
        return _closed(version, dict(EVERY_POD), Narrowing.UNREADABLE)


def _form_in(version: str, spec: object, namespace: str) -> Form:
    source = _OLD if version == _NEW else _NEW
    gep = _read(source, spec, namespace)
    if gep is None or not isinstance(spec, Mapping):
        return _closed(version, dict(EVERY_POD), Narrowing.UNREADABLE)
    job = Job(_SETTINGS[0], World.of([]))
    _WRITERS[version](gep, job)
    written: list[dict[str, Any]] = [dict(converted.manifest["spec"]) for converted in job.written]  # type: ignore[arg-type] # a spec is a mapping
    for converted in written:
        if _RULES[source] not in spec:
            del converted[_RULES[version]]
    if version == _NEW:
        targets = spec["targetRefs"]
        return Form(written[0] | {"targetRefs": targets if isinstance(targets, list) else [targets]})
    covering = cover(gep.targets) if len(gep.targets) > 1 else TargetCover(dict(spec["targetRefs"][0]), exact=True)
    if gep.is_application:
        return _closed(version, covering.target, Narrowing.APPLICATION)
    if covering.exact:
        return Form(written[0] | {"targetRefs": covering.target})
    if gep.denies:
        return _closed(version, covering.target, Narrowing.SEVERAL_TARGETS)
    return Form({"targetRefs": covering.target, "action": "ALLOW", _RULES[version]: []}, Narrowing.SEVERAL_TARGETS)


def _closed(version: str, target: dict[str, Any], narrowing: Narrowing) -> Form:
    """Return the form that denies everything: a rule without conditions matches every request."""
    targets: object = target if version == _OLD else [target]
    return Form({"targetRefs": targets, "action": "DENY", _RULES[version]: [{}]}, narrowing)


def _read(version: str, spec: object, namespace: str) -> Gep | None:
    """Return the policy of a spec, read like any other, or None if it has errors in every kind of mesh."""
    group, kind = KIND
    api_version, name = f"{group}/{version}", "converted"
    metadata = {"name": name, "namespace": namespace}
    root = node_of({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    document = Document(api_version, kind, name, namespace, root, None, root)
    for settings in _SETTINGS:
        policy = registered().policies[(group, version, kind)].read(document, root, settings, Reporter())
        if policy is not None:
            return read(Item(policy, document))
    return None
