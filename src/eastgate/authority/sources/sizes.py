"""The sizes of policies: the limit for one policy, and for all policies of a namespace together.

A policy costs many times its own size in every replica, even if it selects nothing. A namespace owner chooses its size.
A policy beyond a limit is not read: it closes its targets, as any policy with errors does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from eastgate import dialects
from eastgate.authority.sources.codes import NAMESPACE_TOO_LARGE, POLICY_TOO_LARGE
from eastgate.basics.diagnostics import Diagnostic
from eastgate.basics.records import dataclass
from eastgate.ir import PolicyRef
from eastgate.settings import Settings, Size

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BYTES_PER_VALUE: Final = 32  # overhead of each value: `{}` costs as much as a long text


@dataclass(frozen=True, slots=True)
class _Measured:
    """A policy, in the order in which the policies of a namespace count."""

    created: str
    ref: PolicyRef
    size: int

    @property
    def order(self) -> tuple[str, str, str, str]:
        return self.created, self.ref.name, self.ref.kind, self.ref.group


def is_measured(api_version: str, kind: str) -> bool:
    """Return whether objects of a kind are policies, whose size is limited."""
    group, _, version = api_version.rpartition("/")
    return (group, version, kind) in dialects.registered().policies


def size_of(obj: Mapping[str, Any]) -> Size:
    """Return the size of an object: the bytes of its JSON, and 32 more for each value in it.

    Fields that the server sets do not count, so that the size is the same before and after the object is stored.
    """
    metadata = obj.get("metadata")
    written: dict[str, Any] = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    if isinstance(metadata, Mapping):
        written |= {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    if isinstance(annotations := written.get("annotations"), Mapping):
        written["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return Size(_length(written) + _BYTES_PER_VALUE * _values(written))


def _length(value: object) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (ValueError, OverflowError, RecursionError):  # no JSON, or too deep: an error of its own
        return 0


def _values(value: object) -> int:
    """Return the number of values in a value, itself included."""
    count, level = 1, [value]
    while level:
        containers = [each for each in level if isinstance(each, dict | list)]
        count += sum(map(len, containers))
        level = [inner for each in containers for inner in (each.values() if isinstance(each, dict) else each)]
    return count


def policy_problem(size: int, settings: Settings) -> Diagnostic | None:
    """Return the problem of a single policy of this size, or None."""
    if size <= settings.policy_limit:
        return None
    message = f"the policy is too large: its size is {size:,} bytes, and at most {settings.policy_limit:,} are allowed"
    return Diagnostic(POLICY_TOO_LARGE, message, None, "split it into several policies, or set a higher `policyLimit`")


class PolicySizes:
    """The sizes of the policies of a cluster, and the policies beyond a limit.

    In each namespace the oldest policies count first, and those of one second by name. All replicas come to the same
    result, in whatever order they receive policies.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._homes: dict[str, dict[PolicyRef, _Measured]] = {}
        self._totals: dict[str, int] = {}  # without policies beyond the limit for one: they cost nothing
        self._problems: dict[PolicyRef, Diagnostic] = {}
        self._changed: set[str] = set()  # namespaces
        self.turnover = 0
        """The total size of the policies that came or went since it was last set to 0."""

    def put(self, ref: PolicyRef, obj: Mapping[str, Any]) -> None:
        """Measure a policy that is new or was changed."""
        self.remove(ref)
        size = size_of(obj)
        self.turnover += size
        problem = policy_problem(size, self._settings)
        if problem is not None:
            self._problems[ref] = problem
        elif ref.namespace is not None:
            created = str(obj["metadata"].get("creationTimestamp") or "")
            self._homes.setdefault(ref.namespace, {})[ref] = _Measured(created, ref, size)
            self._totals[ref.namespace] = self._totals.get(ref.namespace, 0) + size
            self._changed.add(ref.namespace)

    def remove(self, ref: PolicyRef) -> None:
        """Forget a policy."""
        measured = self._homes.get(ref.namespace or "", {}).pop(ref, None)
        if measured is None:
            self._problems.pop(ref, None)
        elif ref.namespace is not None:
            self.turnover += measured.size
            self._totals[ref.namespace] -= measured.size
            self._changed.add(ref.namespace)
            if not self._homes[ref.namespace]:
                del self._homes[ref.namespace], self._totals[ref.namespace]

    def settle(self) -> set[PolicyRef]:
        """Find the policies beyond the limit of their namespace. Return the policies for which that has changed."""
        changed: set[PolicyRef] = set()
        for namespace in self._changed:
            before = {ref for ref, problem in self._problems.items() if _is_beyond(ref, problem, namespace)}
            beyond = self._beyond(namespace)
            for ref in before - beyond.keys():
                del self._problems[ref]
            self._problems |= beyond
            changed |= before ^ beyond.keys()
        self._changed.clear()
        return changed

    def _beyond(self, namespace: str) -> dict[PolicyRef, Diagnostic]:
        limit = self._settings.namespace_limit
        if self._totals.get(namespace, 0) <= limit:
            return {}
        total, beyond = 0, dict[PolicyRef, Diagnostic]()
        for measured in sorted(self._homes[namespace].values(), key=lambda measured: measured.order):
            total += measured.size
            if total > limit:
                beyond[measured.ref] = _namespace_problem(namespace, limit)
        return beyond

    def problem_of(self, ref: PolicyRef) -> Diagnostic | None:
        """Return the limit that a policy exceeds, as of the last `settle`."""
        return self._problems.get(ref)

    def problem_with(self, ref: PolicyRef, obj: Mapping[str, Any]) -> Diagnostic | None:
        """Return the limit that the policies of a namespace would exceed with this object in the place of its old
        version.

        A policy that grows no larger exceeds none: an existing policy can always be corrected.
        """
        if ref.namespace is None:
            return None
        known = self._homes.get(ref.namespace, {}).get(ref)
        grows_by = size_of(obj) - (known.size if known is not None else 0)
        limit = self._settings.namespace_limit
        if grows_by <= 0 or self._totals.get(ref.namespace, 0) + grows_by <= limit:
            return None
        return _namespace_problem(ref.namespace, limit)


def _is_beyond(ref: PolicyRef, problem: Diagnostic, namespace: str) -> bool:
    return ref.namespace == namespace and problem.code is NAMESPACE_TOO_LARGE


def _namespace_problem(namespace: str, limit: int) -> Diagnostic:
    message = f"the policies of the namespace {namespace} are too large together: at most {limit:,} bytes are allowed"
    return Diagnostic(NAMESPACE_TOO_LARGE, message, None, "delete policies, or set a higher `namespaceLimit`")
