"""Targets that no manifest declares: their spans, and which ones may have been meant."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.base import Policy
from eastgate.dialects.linting import codes, locating
from eastgate.dialects.linting.findings import Finding
from eastgate.dialects.linting.nearest import nearest_name


def missing_target(
    policy: Policy, span: Span | None, kind: str, namespace: str, name: str, declared: Iterable[str]
) -> Finding:
    """Report a target that is not declared. `declared` are the keys of those that are."""
    message = f"{policy.ref} targets {kind} {namespace}/{name}, which no manifest declares"
    help_ = _suggestion(namespace, name, declared) or f"declare {kind} {namespace}/{name}, or name another"
    return Finding(codes.NO_SUCH_TARGET, message, span, help_, (str(policy.ref),))


def target_span(policy: Policy, field: str, number: int, name: str = "") -> Span | None:
    """Find the name of a target in a field of the spec, or what selects the target."""
    node = locating.root_of(policy.span).nearest("spec").get(field)
    if node is None:
        return locating.name_of(policy.span)
    target = node.nearest(number) if isinstance(node.value, list) else node
    return locating.scalar(policy.span, target.span, [name]) if name else target.span


def _suggestion(namespace: str, name: str, declared: Iterable[str]) -> str | None:
    keys = list(declared)
    names = [key.partition("/")[2] for key in keys if key.startswith(f"{namespace}/")]
    close = nearest_name(name, names)
    if close:
        return f"did you mean {close}?"
    elsewhere = next((key for key in keys if key.endswith(f"/{name}")), None)
    return f"there is one in another namespace, {elsewhere}: a policy is beside its target" if elsewhere else None
