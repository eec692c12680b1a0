"""The spec of an AuthorizationPolicy in another version: the same where that can be said, else what denies more.

A form that says the same is what `convert` writes. Where there is none, the form depends on nothing but the policy, and
must be right beside any other policies:

| the policy | its form in v1alpha1 | why nothing smaller is right |
|---|---|---|
| several targets that one selector can name | that selector, the same rules | it is the same |
| ALLOW on several others | a selector that covers all, no rules | rules would allow more beside the ALLOW of others |
| DENY on several others | a selector that covers all, everything is denied | its presence ends a baseline that denies |
| APPLICATION | its targets, everything is denied | v1alpha1 has no such level, which would be open without it |
| one that cannot be read | every pod of the namespace, everything is denied | nobody knows what it denies |

Nothing that is namespaced comes before the Admin tier: what a ClusterAuthorizationPolicy of that tier allows at NETWORK
is allowed there whatever stands here.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from eastgate.basics.diagnostics import Reporter
from eastgate.basics.records import dataclass
from eastgate.cluster import World
from eastgate.controller.admission.conversion.covering import EVERY_POD, TargetCover, cover
from eastgate.controller.admission.conversion.nodes import node_of
from eastgate.convert import gep_writing
from eastgate.convert.gep_reading import Gep, read
from eastgate.convert.model import Item, Job
from eastgate.dialects import gep3779, registered
from eastgate.reading.manifests import Document
from eastgate.settings import MeshMode, Settings

_LOG = logging.getLogger(__name__)

KIND = (gep3779.GROUP, gep_writing.AUTHORIZATION_POLICY)
_OLD, _NEW = "v1alpha1", "v1alpha2"
VERSIONS = (_OLD, _NEW)
STORED = _NEW
_RULES = {_OLD: "tcpRules", _NEW: "rules"}
_WRITERS = {_OLD: gep_writing.v1alpha1, _NEW: gep_writing.v1alpha2}
# Some targets fit the level in one kind of mesh only. Which one this is does not matter here.
_SETTINGS = tuple(Settings.from_mapping({"meshMode": str(mode)}) for mode in MeshMode)


class Narrowing(Enum):
    """Why a form denies more than the policy."""

    SEVERAL_TARGETS = auto()
    APPLICATION = auto()
    UNREADABLE = auto()


@dataclass(frozen=True, slots=True)
class Form:
    """A spec in another version; `narrowing` is why it denies more, None where it says the same."""

    spec: dict[str, Any]
    narrowing: Narrowing | None = None


def form_in(version: str, spec: object, namespace: str) -> Form:
    """Return the form in one version of a spec in the other, of a policy in a namespace. Never raises."""
    try:
        return _form_in(version, spec, namespace)
    except Exception:  # one stored object must not make lists of all of them fail
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
    """Return the form that denies everything: a rule without conditions matches whatever comes."""
    targets: object = target if version == _OLD else [target]
    return Form({"targetRefs": targets, "action": "DENY", _RULES[version]: [{}]}, narrowing)


def _read(version: str, spec: object, namespace: str) -> Gep | None:
    """Return the policy of a spec, read as any other; None where it has errors, in any kind of mesh."""
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
